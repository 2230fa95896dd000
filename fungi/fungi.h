// SPDX-License-Identifier: Apache-2.0
// Everything a program needs: backbones, objectives, features, stores, neighbours, evaluation.
#pragma once

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"
#include "fungi/base/error.h"
#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/evaluate/classify.h"
#include "fungi/feature/extractor.h"
#include "fungi/feature/pca.h"
#include "fungi/feature/project_store.h"
#include "fungi/feature/reduction.h"
#include "fungi/feature/reopen.h"
#include "fungi/feature/store.h"
#include "fungi/input/dataset.h"
#include "fungi/objective/factory.h"
#include "fungi/objective/objective.h"
#include "fungi/search/feature_index.h"
#include "fungi/search/gradient_search.h"
#include "fungi/search/knn.h"
