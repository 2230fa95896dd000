// SPDX-License-Identifier: Apache-2.0
// .npy and .npz against files of numpy, in both directions; headers that lie; files that are whole
// or absent.
#include "fungi/checkpoint/npy.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "archive.h"
#include "fungi/base/atomic_file.h"
#include "fungi/checkpoint/checkpoint.h"
#include "support.h"

namespace fungi {
namespace {

using nlohmann::json;

TEST(Npy, ReadsWhatNumpyWrote) {
  const json arrays = json::parse(read_file(golden("arrays.json")));
  ASSERT_EQ(arrays.size(), 20u);
  for (const auto& [name, facts] : arrays.items()) {
    SCOPED_TRACE(name);
    const NpyFile file = NpyFile::open(golden(name + ".npy"));
    EXPECT_EQ(file.descr(), facts["descr"]);
    EXPECT_EQ(file.shape(), facts["shape"].get<std::vector<size_t>>());
    const Matrix<float> values = file.read();
    const auto wanted = facts["values"].get<std::vector<float>>();
    ASSERT_EQ(file.rows() * file.cols(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(values.data()[i], wanted[i]) << i;
    if (file.descr()[1] == 'f') {
      EXPECT_CONTAINS(error_of([&] { file.read_integers(); }), "integers were expected");
    } else {
      const auto integers = file.read_integers();
      ASSERT_EQ(integers.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_EQ(static_cast<float>(integers[i]), wanted[i]) << i;
    }
  }
}

TEST(Npy, MapsWithoutLoading) {
  const NpyFile file = NpyFile::open(golden("f4.npy"));
  const View<const float> view = file.view<float>();
  const Matrix<float> values = file.read();
  ASSERT_EQ(view.rows, 3u);
  ASSERT_EQ(view.cols, 4u);
  EXPECT_EQ(std::memcmp(view.data, values.data(), 12 * sizeof(float)), 0);
  EXPECT_EQ(NpyFile::open(golden("vector.npy")).view<float>().rows, 7u);
  EXPECT_EQ(NpyFile::open(golden("cube.npy")).view<float>().cols, 12u);
  EXPECT_EQ(NpyFile::open(golden("i8.npy")).view<int64_t>()(0, 1),
            NpyFile::open(golden("i8.npy")).read_integers()[1]);
  EXPECT_CONTAINS(error_of([&] { file.view<double>(); }),
                  "holds '<f4' in C order; '<f8' in C order was expected");
  EXPECT_CONTAINS(error_of([] { NpyFile::open(golden("fortran.npy")).view<float>(); }),
                  "in Fortran order");
  EXPECT_CONTAINS(error_of([] { NpyFile::open(golden("text.npy")).read(); }),
                  "numbers were expected");
  EXPECT_CONTAINS(error_of([] { NpyFile::open(golden("big_endian.npy")); }),
                  "big-endian type '>f4'");
  EXPECT_CONTAINS(error_of([] { NpyFile::open(golden("record.npy")); }), "describes records");
}

using NpyFolder = FolderTest;

TEST_F(NpyFolder, WritesTheBytesOfNumpy) {
  const auto same = [&](const std::string& name, const NpyArray& array) {
    write_npy(folder_ / name, array);
    EXPECT_EQ(read_file(folder_ / name), read_file(golden(name))) << name;
  };
  const Matrix<float> f4 = NpyFile::open(golden("f4.npy")).read();
  same("f4.npy", npy_array(f4));
  same("i8.npy", npy_array(NpyFile::open(golden("i8.npy")).view<int64_t>()));
  same("u1.npy", npy_array(std::vector<uint8_t>{0, 1, 2, 3, 4}));
  same("vector.npy", npy_array(std::vector<float>{0, 1, 2, 3, 4, 5, 6}));
  same("scalar.npy", npy_array(std::vector<float>{2.5f}.data(), {}));
  same("none.npy", npy_array(Matrix<float>(0, 5)));
  std::vector<float> cube(24);
  for (size_t i = 0; i < 24; ++i) cube[i] = static_cast<float>(i);
  same("cube.npy", npy_array(cube.data(), {2, 3, 4}));
}

TEST_F(NpyFolder, NpzThereAndBack) {
  const std::vector<float> a{1, 2, 3};
  const std::vector<int64_t> labels{-1, int64_t{1} << 40};
  const Matrix<float> none(0, 3);
  const auto path = folder_ / "a.npz";
  write_npz(path,
            {{"block/a", npy_array(a)}, {"labels", npy_array(labels)}, {"none", npy_array(none)}});
  const std::string first = read_file(path);
  write_npz(path,
            {{"block/a", npy_array(a)}, {"labels", npy_array(labels)}, {"none", npy_array(none)}});
  EXPECT_EQ(read_file(path), first);

  for (const size_t flags : {size_t{6}, first.find("PK\x01\x02") + 8})
    EXPECT_EQ(first.substr(flags, 2), std::string("\0\x08", 2)) << "names are UTF-8";

  const NpzFile file = NpzFile::open(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"block/a", "labels", "none"}));
  EXPECT_TRUE(file.contains("none"));
  EXPECT_FALSE(file.contains("nono"));
  EXPECT_EQ(file.shape("none"), (std::vector<size_t>{0, 3}));
  EXPECT_EQ(file.read("block/a")(2, 0), 3.0f);
  EXPECT_EQ(file.read_integers("labels"), labels);
  EXPECT_CONTAINS(error_of([&] { file.read("b"); }), "no array 'b' among 3");
  EXPECT_CONTAINS(error_of([&] { file.read_integers("block/a"); }), "integers were expected");
  EXPECT_EQ(Checkpoint::open(path).read("block/a").cols(), 3u);
  EXPECT_EQ(NpzFile::open(golden("augreg_packed.npz")).read("head/bias").rows(), 3u);
  EXPECT_EQ(NpzFile::open(golden("augreg.npz")).read_integers("key")[1], 1);
}

TEST_F(NpyFolder, NpzInPieces) {
  const Matrix<float> whole = [] {
    Matrix<float> m(7, 5);
    for (size_t i = 0; i < 35; ++i) m.data()[i] = static_cast<float>(i);
    return m;
  }();
  const std::vector<int64_t> labels{3, 4}, nothing;
  write_npz(
      folder_ / "once.npz",
      {{"m", npy_array(whole)}, {"nothing", npy_array(nothing)}, {"labels", npy_array(labels)}});
  const NpzFile once = NpzFile::open(folder_ / "once.npz");  // libzip looks at the checksums
  EXPECT_TRUE(once.read_integers("nothing").empty());
  EXPECT_EQ(once.read_integers("labels"), labels);
  const auto bytes = npy_array(whole).bytes;
  {
    NpzWriter writer(folder_ / "pieces.npz");
    writer.begin("m", "<f4", {7, 5});
    for (size_t at = 0; at < bytes.size(); at += 33)
      writer.append(bytes.subspan(at, std::min<size_t>(33, bytes.size() - at)));
    writer.begin("nothing", "<i8", {0});
    writer.begin("labels", "<i8", {2});
    writer.append(npy_array(labels).bytes);
    writer.finish();
  }
  EXPECT_EQ(read_file(folder_ / "pieces.npz"), read_file(folder_ / "once.npz"));
  {
    NpzWriter writer(folder_ / "short.npz");
    writer.begin("m", "<f4", {7, 5});
    writer.append(bytes.subspan(4));
    EXPECT_CONTAINS(error_of([&] { writer.finish(); }), "short.npz: m.npy");
  }
  EXPECT_CONTAINS(error_of([&] {
                    NpzWriter writer(folder_ / "twice.npz");
                    writer.begin("m", "<f4", {0});
                    writer.begin("m", "<f4", {0});
                  }),
                  "cannot be named 'm'");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "short.npz"));
  EXPECT_EQ(test::contents(folder_.path()).size(), 2u) << "left behind";
}

TEST_F(NpyFolder, OneByteHasNoOrder) {
  for (const std::string order : {"|", "<", ">", "="}) {
    const std::string dict =
        "{'descr': '" + order + "u1', 'fortran_order': False, 'shape': (3,), }\n";
    const auto path =
        folder_.write("a.npy", std::string("\x93NUMPY\x01", 7) + '\0' +
                                   raw(static_cast<uint16_t>(dict.size())) + dict + "\x01\x02\xff");
    const Matrix<float> read = NpyFile::open(path).read();
    EXPECT_EQ(read.data()[2], 255) << order;
  }
}

TEST_F(NpyFolder, LyingHeaders) {
  const auto refusal = [&](const std::string& dict, char version = 1, size_t data = 16) {
    const size_t width = version == 1 ? 2 : 4;
    const std::string length = raw(static_cast<uint32_t>(dict.size())).substr(0, width);
    const auto path = folder_.write("a.npy", std::string("\x93NUMPY") + version + '\0' + length +
                                                 dict + std::string(data, '\0'));
    return error_of([&] { NpyFile::open(path).read(); });
  };
  const auto with = [&](const std::string& shape) {
    return refusal("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n");
  };
  EXPECT_CONTAINS(with("(5,)"), "shape 5 of '<f4' does not fit the 16 bytes");
  EXPECT_CONTAINS(with("(3,)"), "does not fit");
  EXPECT_CONTAINS(with("(4294967296, 4294967296)"), "more elements than memory");
  EXPECT_CONTAINS(with("(4294967296, 1073741825)"), "more elements than memory");
  EXPECT_CONTAINS(with("(99999999999999999999,)"), "impossible shape");
  EXPECT_CONTAINS(with("(-4,)"), "impossible shape");
  EXPECT_CONTAINS(with("(4 5)"), "misses ','");
  EXPECT_CONTAINS(with("4"), "misses '('");
  EXPECT_CONTAINS(refusal("{'descr': '<f4', 'shape': (4,)}"),
                  "needs descr, fortran_order and shape");
  EXPECT_CONTAINS(refusal("{'descr': '<f4', 'descr': '<f4'}"), "there twice");
  EXPECT_CONTAINS(refusal("{'descr': '<f4', 'fortran_order': Maybe}"), "True or False");
  EXPECT_CONTAINS(refusal("{'descr': 'f', 'fortran_order': True}"), "unknown type 'f'");
  EXPECT_CONTAINS(refusal("{'descr': '<f99999999', 'fortran_order': True}"), "unknown type");
  EXPECT_CONTAINS(refusal("{'descr': __import__('os').system('ls')}"), "quoted text");
  EXPECT_CONTAINS(refusal("{'descr"), "without end");
  EXPECT_CONTAINS(refusal(""), "misses '{'");
  EXPECT_CONTAINS(refusal("{}", 4), "version 4");
  EXPECT_CONTAINS(refusal("{'descr': '<f3', 'fortran_order': False, 'shape': (4,)}", 1, 12),
                  "numbers were expected");
  const auto path = folder_.write("b.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14));
  EXPECT_CONTAINS(error_of([&] { NpyFile::open(path); }), "should be 4294967295 bytes long");
}

using AtomicFile = FolderTest;

TEST_F(AtomicFile, ReplacesWhole) {
  const auto path = folder_ / "a";
  write_file_atomically(path, "old");
  const std::string head = "new ", tail = "text";
  write_file_atomically(path, {std::as_bytes(std::span(head)), std::as_bytes(std::span(tail))});
  EXPECT_EQ(read_file(path), "new text");
  folder_.write("a.tmp", "left by a killed run, longer than the new text");
  write_file_atomically(path, "x");
  EXPECT_EQ(read_file(path), "x");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.tmp"));
  EXPECT_CONTAINS(error_of([&] { write_file_atomically(folder_ / "none" / "a", "x"); }),
                  "cannot be created");
  std::filesystem::create_directory(folder_ / "b");
  EXPECT_CONTAINS(error_of([&] { write_file_atomically(folder_ / "b", "x"); }), "found a folder");
  {
    const fungi::AtomicFile first(folder_ / "c");
    EXPECT_CONTAINS(error_of([&] { write_file_atomically(folder_ / "c", "x"); }),
                    "another program is writing");
  }
  write_file_atomically(folder_ / "c", "x");
  EXPECT_EQ(read_file(folder_ / "c"), "x");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(error_of([&] { write_file_atomically(folder_ / "pipe", "x"); }),
                  "found a device or pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ / "pipe"));
}

TEST_F(AtomicFile, ALinkIsFollowedOnRequestAlone) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_ / "far");
  fs::create_symlink("far/file", folder_ / "near");  // there is nothing behind it yet
  fs::create_symlink("near", folder_ / "nearer");
  for (const char* text : {"first", "second"}) {
    write_file_atomically(behind_links(folder_ / "nearer"), text);
    EXPECT_TRUE(fs::is_symlink(folder_ / "near") && fs::is_symlink(folder_ / "nearer"));
    EXPECT_EQ(read_file(folder_ / "far" / "file"), text);
  }
  write_file_atomically(folder_ / "nearer", "third");
  EXPECT_FALSE(fs::is_symlink(folder_ / "nearer"));
  EXPECT_EQ(read_file(folder_ / "far" / "file"), "second") << "of somebody else, perhaps";
  fs::create_symlink("round", folder_ / "round");
  EXPECT_CONTAINS(error_of([&] { behind_links(folder_ / "round"); }), "in a circle");
}

// A limit on the size of files stands for the full disk.
TEST_F(AtomicFile, AFailedWriteLeavesTheOldFile) {
  const auto path = folder_ / "a";
  write_file_atomically(path, "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      error_of([&] { write_file_atomically(path, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_CONTAINS(message, "cannot be written");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.tmp"));
}

}  // namespace
}  // namespace fungi
