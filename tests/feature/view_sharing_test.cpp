// SPDX-License-Identifier: Apache-2.0
// Which requests may share their views: the mask is part of what the backbone sees.
#include <gtest/gtest.h>

#include "fungi/feature/view_schedule.h"
#include "fungi/objective/factory.h"
#include "tests/feature/extractor_fixture.h"

namespace fungi {
namespace {

TEST(ViewSharing, AMaskedStudentIsNotItsTeacher) {
  ViewSchedule schedule(modality_for(test::tiny(), Preset::native));
  const auto ibot = make_objective("ibot:width=8,local_crops=0", {8, 8, 1, Preset::native});
  for (const ViewRequest& request : ibot->views()) schedule.add(request);
  EXPECT_EQ(schedule.views_per_sample(), 1 + 2 + 2u);  // the same crops, masked and whole
}

TEST(ViewSharing, RequestsThatDifferInTheirMasksOnly) {
  ViewSchedule schedule(modality_for(test::tiny(), Preset::native));
  ViewRequest first;
  first.plan = ImageCrops{};
  first.masked_views = 2;
  first.mask_ratio = 0.5;
  ViewRequest fewer = first, lighter = first;
  fewer.masked_views = 1;
  lighter.mask_ratio = 0.25;
  const size_t place = schedule.add(first);
  EXPECT_NE(schedule.add(fewer), place);
  EXPECT_NE(schedule.add(lighter), place);
  EXPECT_NE(schedule.add(lighter), schedule.add(fewer));
  EXPECT_EQ(schedule.add(first), place);
}

}  // namespace
}  // namespace fungi
