// SPDX-License-Identifier: Apache-2.0
// What callers get wrong: rows that are not there, stores that would be gone.
#include "fungi/retrieve/feature_index.h"
#include "fungi/retrieve/gradient_search.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

TEST(FeatureIndex, HasNoRowsBeyondItsLast) {
  const test::TemporaryFolder folder;
  test::write_made_store(folder / "store", {{"a", 0, {{1, 2}}}, {"b", 1, {{2, 1}}}}, {"x", "y"});
  Pool pool(1);
  const Store store = Store::open(folder / "store");
  const FeatureIndex index = FeatureIndex::build(store, {}, pool);
  EXPECT_EQ(index.id(1), "b");
  EXPECT_EQ(index.label(1), 1);
  for (const size_t row : {size_t{2}, size_t{100000000}, SIZE_MAX}) {
    EXPECT_ERROR("of 2", index.id(row));
    EXPECT_ERROR("of 2", index.label(row));
    EXPECT_ERROR("of 2", index.class_name(row));
  }
}

template <class Database, class Queries>
constexpr bool kSearches =
    std::is_constructible_v<GradientSearch, Database, Queries, std::string_view, Pool&>;
static_assert(kSearches<Store&, const Store&>);
static_assert(!kSearches<Store, Store> && !kSearches<Store&, Store> && !kSearches<Store, Store&>);

}  // namespace
}  // namespace fungi
