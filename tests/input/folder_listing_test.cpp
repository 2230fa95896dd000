// SPDX-License-Identifier: Apache-2.0
// Folders with other things than files, and how little of a file is looked at to list it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fungi/input/dataset.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

Names ids(const Dataset& data) {
  Names out;
  for (size_t i = 0; i < data.size(); ++i) out.push_back(data.id(i));
  return out;
}

TEST(FolderListing, PipesAreLeftOutAndCounted) {
  const TemporaryFolder root;
  root.write("notes.txt", "x");
  for (const char* name : {"a.jpg", "b.jpg"})
    ASSERT_EQ(::mkfifo((root.path() / name).c_str(), 0600), 0);
  fs::create_symlink("a.jpg", root.path() / "c.png");
  const std::string text = test::error_of([&] { open_dataset(root.path()); });
  EXPECT_NE(text.find("2 .jpg, 1 .png, 1 .txt"), std::string::npos) << text;
  EXPECT_NE(text.find("pipes"), std::string::npos) << text;
  root.write("d.jpg", "x");
  const auto data = open_dataset(root.path());
  EXPECT_EQ(ids(*data), (Names{"d.jpg"}));
  EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"jpg", 2}, {"png", 1}, {"txt", 1}}));
  EXPECT_EQ(data->notes(), (Names{"3 of what was left out are pipes, sockets or devices"}));
}

// Who may list a folder but not enter it cannot look at its files: what they are has to come from
// the listing.
TEST(FolderListing, FilesAreNotLookedUpOneByOne) {
  const TemporaryFolder root;
  root.write("a/1.jpg", "x");
  ASSERT_EQ(::mkfifo((root.path() / "a/2.jpg").c_str(), 0600), 0);
  fs::permissions(root.path(), fs::perms::all);
  fs::permissions(root.path() / "a", fs::perms(0444));
  const bool superuser = ::geteuid() == 0;  // may do everything: act as somebody else meanwhile
  if (superuser && ::seteuid(65534) != 0)
    GTEST_SKIP() << "root enters every folder, and this system does not let it become another user";
  std::unique_ptr<Dataset> data;
  const std::string error =
      test::error_of([&] { data = open_dataset(root.path() / "a", {.kind = DatasetKind::flat}); });
  if (superuser && ::seteuid(0) != 0) FAIL() << "cannot take root's rights back";
  fs::permissions(root.path() / "a", fs::perms::owner_all);
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(ids(*data), (Names{"1.jpg"})) << "2.jpg would be taken for a file that is gone";
}

}  // namespace
}  // namespace fungi
