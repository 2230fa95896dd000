// SPDX-License-Identifier: Apache-2.0
// Folders and lists: order, ids, labels, and what is said about places without images.
#include "fungi/input/dataset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "fungi/base/error.h"
#include "tests/input/pattern.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::TemporaryFolder;
using testing::golden_image;

std::vector<std::string> ids(const Dataset& data) {
  std::vector<std::string> out;
  for (size_t i = 0; i < data.size(); ++i) out.push_back(data.id(i));
  return out;
}

std::vector<int> labels(const Dataset& data) {
  std::vector<int> out;
  for (size_t i = 0; i < data.size(); ++i) out.push_back(data.label(i));
  return out;
}

std::string open_error(const std::filesystem::path& path, const DatasetOptions& options = {}) {
  return test::error_of([&] { open_dataset(path, options); });
}

using Names = std::vector<std::string>;

TEST(FolderDataset, OrderAndNumbersOfTorchvision) {
  const auto golden = testing::golden_json("input/folder.json");
  const TemporaryFolder root;
  for (const std::string name : golden["tree"]) root.write(name, "x");
  for (const auto kind : {DatasetKind::automatic, DatasetKind::classes}) {
    const auto data = open_dataset(root.path(), {.kind = kind});
    EXPECT_EQ(data->kind(), DatasetKind::classes);
    EXPECT_EQ(data->class_names(), golden["classes"].get<Names>());
    ASSERT_EQ(data->size(), golden["samples"].size());
    for (size_t i = 0; i < data->size(); ++i) {
      EXPECT_EQ(data->id(i), golden["samples"][i][0]);
      EXPECT_EQ(data->label(i), golden["samples"][i][1]);
    }
    EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"txt", 2}}));
  }
}

TEST(FolderDataset, FlatAndSingleFile) {
  const TemporaryFolder root;
  root.write("b.png", golden_image("rgb8.png"));
  root.write("a.jpg", golden_image("grey.jpg"));
  root.write("notes.md", "x");
  root.write(".hidden.jpg", "x");
  root.write("empty/only.txt", "x");
  const auto data = open_dataset(root.path());
  EXPECT_EQ(data->kind(), DatasetKind::flat);
  EXPECT_EQ(ids(*data), (Names{"a.jpg", "b.png"}));
  EXPECT_EQ(labels(*data), (std::vector<int>{-1, -1}));
  EXPECT_TRUE(data->class_names().empty());
  EXPECT_EQ(data->read(1), golden_image("rgb8.png"));
  EXPECT_EQ(data->stored_bytes(1), golden_image("rgb8.png").size());
  EXPECT_EQ(data->image(1).rgb, testing::pattern(23, 17, 1).rgb);

  const auto one = open_dataset(root.path() / "b.png");
  EXPECT_EQ(ids(*one), (Names{"b.png"}));
  EXPECT_EQ(one->image(0).rgb, data->image(1).rgb);
  EXPECT_EQ(one->stored_bytes(0), data->stored_bytes(1));
  std::filesystem::remove(root.path() / "b.png");
  EXPECT_EQ(one->stored_bytes(0), std::nullopt);
}

TEST(FolderDataset, HiddenPicturesAreCounted) {
  const TemporaryFolder root;
  for (const char* name : {".a.jpg", "cat/._1.png", "cat/.DS_Store", ".git/2.jpg"})
    root.write(name, "x");
  EXPECT_NE(open_error(root.path()).find("2 hidden picture(s)"), std::string::npos);
  root.write("cat/1.png", "x");
  const auto data = open_dataset(root.path());
  EXPECT_EQ(ids(*data), (Names{"cat/1.png"}));
  EXPECT_EQ(data->notes(),
            (Names{"2 hidden picture(s), whose names begin with a dot, were left out"}));
}

TEST(FolderDataset, SplitsTakenForClassesAreNoted) {
  const TemporaryFolder root;
  for (const char* name : {"train/cat/1.jpg", "test/cat/2.jpg"}) root.write(name, "x");
  ASSERT_EQ(open_dataset(root.path())->notes().size(), 1u);
  EXPECT_NE(open_dataset(root.path())->notes()[0].find("look like splits"), std::string::npos);
  EXPECT_TRUE(open_dataset(root.path(), {.split = "train"})->notes().empty());
  root.write("dogs/3.jpg", "x");
  EXPECT_TRUE(open_dataset(root.path())->notes().empty());
}

TEST(FolderDataset, MixedFolderKeepsLooseImagesWithoutLabel) {
  const TemporaryFolder root;
  for (const char* name : {"loose.jpg", "cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg", ".git/x.jpg"})
    root.write(name, "x");
  const auto mixed = open_dataset(root.path());
  EXPECT_EQ(ids(*mixed), (Names{"loose.jpg", "cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg"}));
  EXPECT_EQ(labels(*mixed), (std::vector<int>{-1, 0, 1, 1}));
  const auto strict = open_dataset(root.path(), {.kind = DatasetKind::classes});
  EXPECT_EQ(ids(*strict), (Names{"cat/1.jpg", "dog/1.jpg", "dog/old/2.jpg"}));
  EXPECT_TRUE(strict->ignored().empty()) << "it is a picture";
  ASSERT_EQ(strict->notes().size(), 1u);
  EXPECT_NE(strict->notes()[0].find("1 picture(s) lie outside"), std::string::npos);
  ASSERT_EQ(mixed->notes().size(), 1u);
  EXPECT_NE(mixed->notes()[0].find("have no label"), std::string::npos);
  const auto flat = open_dataset(root.path(), {.kind = DatasetKind::flat});
  EXPECT_EQ(flat->size(), 4u);
  EXPECT_EQ(flat->label(1), -1);
  EXPECT_TRUE(flat->notes().empty());
  EXPECT_NE(open_error(root.path() / "dog/old", {.kind = DatasetKind::classes})
                .find("found 1 picture(s) and none in a folder"),
            std::string::npos);
}

// A store written into the data folder must not move the numbers of the classes.
TEST(FolderDataset, FoldersWithoutImagesAreNoClasses) {
  const TemporaryFolder root;
  for (const char* name : {"cat/1.jpg", "dog/deep/2.jpg", "a.store/rows-00000.jsonl",
                           "a.store/state/kl-head.npy", "cow/notes.txt"})
    root.write(name, "x");
  std::filesystem::create_directories(root.path() / "bare");
  for (const auto kind : {DatasetKind::automatic, DatasetKind::classes}) {
    const auto data = open_dataset(root.path(), {.kind = kind});
    EXPECT_EQ(data->class_names(), (Names{"cat", "dog"}));
    EXPECT_EQ(labels(*data), (std::vector<int>{0, 1}));
    EXPECT_EQ(data->ignored().at("npy"), 1u);
  }
}

TEST(FolderDataset, ImagesWinOverArchivesBesideThem) {
  const TemporaryFolder root;
  root.write("backup.tar", "x");
  root.write("train.bin", "x");
  EXPECT_THROW(open_dataset(root.path()), Error);  // taken for shards
  root.write("a/b/c/1.jpg", "x");
  EXPECT_EQ(open_dataset(root.path())->kind(), DatasetKind::classes);
}

TEST(FolderDataset, SplitsAndGivenClasses) {
  const TemporaryFolder root;
  for (const char* name : {"train/ant/1.jpg", "train/bee/1.jpg", "train/cow/1.jpg",
                           "test/cow/1.jpg", "test/bee/1.jpg"})
    root.write(name, "x");
  const auto train = open_dataset(root.path(), {.split = "train"});
  const auto test = open_dataset(root.path() / "test", {.class_names = train->class_names()});
  EXPECT_EQ(ids(*test), (Names{"bee/1.jpg", "cow/1.jpg"}));
  EXPECT_EQ(labels(*test), (std::vector<int>{1, 2}));
  EXPECT_EQ(test->class_names(), train->class_names());
  EXPECT_NE(
      open_error(root.path(), {.split = "train", .class_names = {"ant", "bee"}}).find("'cow'"),
      std::string::npos);
  EXPECT_NE(open_error(root.path(), {.split = "val"}).find("'val'"), std::string::npos);
}

TEST(FolderDataset, ASingleFileHasNoSplit) {
  const TemporaryFolder root;
  root.write("b.png", golden_image("rgb8.png"));
  EXPECT_NE(open_error(root.path() / "b.png", {.split = "train"}).find("no split 'train'"),
            std::string::npos);
}

TEST(FolderDataset, LinksAreFollowedButLoopsAreNot) {
  const TemporaryFolder root;
  root.write("a/1.jpg", "x");
  root.write("elsewhere.d/2.jpg", "x");
  std::filesystem::create_directory_symlink("..", root.path() / "a/up");
  std::filesystem::create_directory_symlink("../elsewhere.d", root.path() / "a/link");
  std::filesystem::create_symlink("gone", root.path() / "a/dangling.jpg");
  const auto data = open_dataset(root.path());
  EXPECT_EQ(ids(*data), (Names{"a/1.jpg", "a/dangling.jpg", "a/link/2.jpg", "elsewhere.d/2.jpg"}));
  EXPECT_THROW(data->image(1), Error);
}

TEST(FolderDataset, SaysWhatItFound) {
  const TemporaryFolder root;
  EXPECT_NE(open_error(root.path()).find("no files"), std::string::npos);
  root.write("a.txt", "x");
  root.write("deep/b.txt", "x");
  root.write("deep/c.doc", "x");
  const std::string text = open_error(root.path());
  EXPECT_NE(text.find("1 .doc, 2 .txt"), std::string::npos) << text;
  EXPECT_NE(open_error(root.path() / "missing").find("no such"), std::string::npos);
  EXPECT_NE(open_error(root.path() / "deep/c.doc").find("c.doc"), std::string::npos);
  EXPECT_NE(open_error(root.path() / "a.txt", {.kind = DatasetKind::classes}), "");
}

TEST(FolderDataset, UnreadableFolder) {
  const TemporaryFolder root;
  root.write("a/1.jpg", "x");
  const bool superuser = ::geteuid() == 0;  // may read everything: act as somebody else meanwhile
  std::filesystem::permissions(root.path(), std::filesystem::perms::none);
  if (superuser && ::seteuid(65534) != 0)
    GTEST_SKIP() << "root reads every folder, and this system does not let it become another user";
  const std::string text = open_error(root.path());
  if (superuser && ::seteuid(0) != 0) FAIL() << "cannot take root's rights back";
  std::filesystem::permissions(root.path(), std::filesystem::perms::owner_all);
  EXPECT_NE(text.find("cannot read the folder: Permission denied"), std::string::npos) << text;
}

TEST(FolderDataset, BadFilesFailOneByOne) {
  const TemporaryFolder root;
  root.write("a.gif", "GIF89a");
  root.write("b.jpg", "");
  root.write("c.png", golden_image("rgb8.png"));
  const auto data = open_dataset(root.path());
  ASSERT_EQ(data->size(), 3u);
  for (size_t i = 0; i < 2; ++i) {
    try {
      data->image(i);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.place(), data->id(i));
    }
  }
  EXPECT_EQ(data->image(2).width, 23u);
}

struct ListCase {
  const char *name, *text;
  Names ids;
  std::vector<int> labels;
  Names classes;
};

TEST(ListDataset, EveryDialect) {
  const std::vector<ListCase> cases = {
      {"plain.csv", "a.jpg,2\nb.jpg,0\n", {"a.jpg", "b.jpg"}, {2, 0}, {}},
      {"header.csv",
       "Label,fold,FILE\ndog,1,a.jpg\ncat,2,b.jpg\n",
       {"a.jpg", "b.jpg"},
       {1, 0},
       {"cat", "dog"}},
      {"quoted.csv",
       "\xef\xbb\xbf"
       "path,label\r\n\"a,\"\"1\"\".jpg\",\"two\nlines\"\r\nb.jpg,\r\n\r\n",
       {"a,\"1\".jpg", "b.jpg"},
       {0, -1},
       {"two\nlines"}},
      {"blanks.csv",
       "path, label\na.jpg , 2\n  \nb.jpg,\n\" c.jpg\",\" 3\"\n",
       {"a.jpg", "b.jpg", " c.jpg"},
       {1, -1, 0},
       {" 3", "2"}},
      {"blanks.txt", " a.jpg\nb.jpg\n", {" a.jpg", "b.jpg"}, {-1, -1}, {}},
      {"negative.csv", "a.jpg,-1\nb.jpg,2\n", {"a.jpg", "b.jpg"}, {-1, 2}, {}},
      {"below.csv", "a.jpg,-2\nb.jpg,2\n", {"a.jpg", "b.jpg"}, {0, 1}, {"-2", "2"}},
      {"synonyms.csv", "Category, IMG\nx,a.jpg\n", {"a.jpg"}, {0}, {"x"}},
      {"index.csv", ",img_path\n0,a.jpg\n", {"a.jpg"}, {-1}, {}},  // as pandas writes it
      {"class.csv", "a.jpg,image\nb.jpg,file\n", {"a.jpg", "b.jpg"}, {1, 0}, {"file", "image"}},
      {"missing.csv", "gone.png,2\nb.jpg,0\n", {"gone.png", "b.jpg"}, {2, 0}, {}},
      {"blobs.csv",
       "blob,2\nb.jpg,0\n",
       {"blob", "b.jpg"},
       {2, 0},
       {}},  // a file without extension
      {"no_labels.csv", "image\na.jpg\nb.jpg", {"a.jpg", "b.jpg"}, {-1, -1}, {}},
      {"some.tsv",
       "path\tclass\na b.jpg\t1\nc,d.jpg\tx\n",
       {"a b.jpg", "c,d.jpg"},
       {0, 1},
       {"1", "x"}},
      {"lines.txt", "a b.jpg\nsub/c.jpg\n", {"a b.jpg", "sub/c.jpg"}, {-1, -1}, {}},
      {"rows.jsonl",
       "{\"file_name\": \"a.jpg\", \"label\": 4}\n\n{\"label\": null, \"file_name\": \"b.jpg\"}\n",
       {"a.jpg", "b.jpg"},
       {4, -1},
       {}},
      {"blank.jsonl", "\n {\"path\": \"a.jpg\"}\n", {"a.jpg"}, {-1}, {}},
      {"names.jsonl", "{\"image\": \"a.jpg\", \"category\": \"x\"}", {"a.jpg"}, {0}, {"x"}},
  };
  const TemporaryFolder root;
  root.write("blob", golden_image("rgb8.png"));
  for (const ListCase& c : cases) {
    SCOPED_TRACE(c.name);
    root.write(c.name, c.text);
    const auto data = open_dataset(root.path() / c.name);
    EXPECT_EQ(data->kind(), DatasetKind::list);
    EXPECT_EQ(ids(*data), c.ids);
    EXPECT_EQ(labels(*data), c.labels);
    EXPECT_EQ(data->class_names(), c.classes);
  }
}

TEST(ListDataset, KeysThatMayBeTheLabelAreNamed) {
  const TemporaryFolder root;
  const auto notes = [&](const char* text) {
    root.write("rows.jsonl", text);
    return open_dataset(root.path() / "rows.jsonl")->notes();
  };
  const Names one = notes("{\"path\": \"a.jpg\", \"species\": \"x\"}\n{\"path\": \"b.jpg\"}\n");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NE(one[0].find("'species'"), std::string::npos) << one[0];
  EXPECT_TRUE(notes("{\"path\": \"a.jpg\", \"species\": \"x\", \"label\": 1}\n").empty());
  EXPECT_TRUE(notes("{\"path\": \"a.jpg\"}\n{\"path\": \"b.jpg\"}\n").empty());
}

TEST(ListDataset, ReadsBesideTheListAndKnowsGivenClasses) {
  const TemporaryFolder root;
  root.write("lists/train.csv", "../images/a.png,1\n");
  root.write("images/a.png", golden_image("rgb8.png"));
  const auto data = open_dataset(root.path() / "lists/train.csv");
  EXPECT_EQ(data->image(0).rgb, testing::pattern(23, 17, 1).rgb);
  const auto number = open_dataset(root.path() / "lists/train.csv", {.class_names = {"x", "y"}});
  EXPECT_EQ(number->label(0), 1);
  EXPECT_EQ(number->class_names(), (Names{"x", "y"}));
  const auto name = open_dataset(root.path() / "lists/train.csv", {.class_names = {"1", "2"}});
  EXPECT_EQ(name->label(0), 0);
  EXPECT_NE(open_error(root.path() / "lists/train.csv", {.class_names = {"x"}}), "");
}

TEST(ListDataset, BadLists) {
  const TemporaryFolder root;
  const auto error_of = [&](const char* name, const char* text) {
    root.write(name, text);
    return open_error(root.path() / name);
  };
  EXPECT_NE(error_of("empty.csv", "").find("names no files"), std::string::npos);
  EXPECT_NE(error_of("open.csv", "\"a.jpg,1\n").find("not closed"), std::string::npos);
  EXPECT_NE(error_of("twice.csv", "a.jpg,1\na.jpg,1\n").find("occurs twice"), std::string::npos);
  for (const char* text :
       {"path,label\r\na.jpg,1\r\n\r\n\"b\r\nc.jpg\",2\r\na.jpg,1\r\n",
        "path,label\na.jpg,1\n\n\"b\nc.jpg\",2\na.jpg,1", "path,label\ra.jpg,1\r\r\rb,2\ra.jpg,1"})
    EXPECT_NE(error_of("twice.csv", text).find("in the lines 2 and 6"), std::string::npos)
        << open_error(root.path() / "twice.csv");
  EXPECT_NE(error_of("hole.csv", "path,label\n,3\n").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("bad.jsonl", "{\"path\": \"a.jpg\"}\nnonsense\n").find("line 2"),
            std::string::npos);
  EXPECT_NE(error_of("list.jsonl", "{\"path\": \"a.jpg\", \"label\": [1]}").find("array"),
            std::string::npos);
  EXPECT_NE(error_of("none.jsonl", "{\"label\": 1}").find("names no file"), std::string::npos);
  for (const char* text : {"path;label\na.jpg;1\n", "a.jpg;1\nb.jpg;2\n"})
    for (const char* name : {"semicolons.csv", "semicolons.txt"})
      EXPECT_NE(error_of(name, text).find("by semicolons"), std::string::npos) << name << text;
  root.write("wide.csv", std::vector<uint8_t>{0xff, 0xfe, 'a', 0, '\n', 0});
  EXPECT_NE(open_error(root.path() / "wide.csv").find("UTF-16"), std::string::npos);
  root.write("bare.csv", std::vector<uint8_t>{'a', 0, '\n', 0});
  EXPECT_NE(open_error(root.path() / "bare.csv").find("UTF-16"), std::string::npos);
  root.write("a;b.jpg", "x");
  EXPECT_EQ(error_of("odd.csv", "a;b.jpg\n"), "") << "a file may be called so";
}

TEST(ListDataset, UnknownColumnsAreNamed) {
  const TemporaryFolder root;
  const auto expect_error = [&](const char* name, const char* text, Names parts) {
    root.write(name, text);
    const std::string error = open_error(root.path() / name);
    for (const std::string& part : parts)
      EXPECT_NE(error.find(part), std::string::npos) << name << ": " << error;
  };
  expect_error("path.csv", "photo,label\na.jpg,1\n",
               {"'photo', 'label'", "filepath", "img", "category", "path.csv"});
  expect_error("path.tsv", "photo\tlabel\na.jpg\t1\n", {"'photo', 'label'"});
  expect_error("label.csv", "path,breed\na.jpg,x\n", {"'path', 'breed'", "label, class, target"});
  expect_error("more.csv", "id,File,breed\n1,a.jpg,x\n", {"'id', 'File', 'breed'", "only 'File'"});
  expect_error("ids.csv", "id,breed\n000bec,collie\n", {"'id', 'breed'"});
  expect_error("turned.csv", "cat,a.jpg\ndog,b.jpg\n", {"'cat', 'a.jpg'"});
  expect_error("spaces.txt", "a.jpg tabby cat\nb.jpg dog\n",
               {"'a.jpg tabby cat'", "commas or tabs"});
  expect_error("plain.txt", "pictures\na.jpg\n", {"'pictures'"});
}

TEST(DatasetKinds, Names) {
  for (const char* name : {"auto", "classes", "flat", "list", "tar", "cifar", "idx"})
    EXPECT_STREQ(to_string(parse_dataset_kind(name)), name);
  try {
    parse_dataset_kind("zip");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("classes, flat"), std::string::npos);
  }
}

}  // namespace
}  // namespace fungi
