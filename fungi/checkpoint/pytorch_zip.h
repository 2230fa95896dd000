// SPDX-License-Identifier: Apache-2.0
// Where the two users of zip archives meet: open_zip tells PyTorch files and .npz apart. Internal
// to this room.
#pragma once

#include <memory>

#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/zip.h"

namespace fungi {

SourcePointer open_npz(FilePointer file, std::unique_ptr<ZipArchive> archive);

}  // namespace fungi
