// SPDX-License-Identifier: Apache-2.0
// Exports read back: .npz by our own reader, HDF5 by the library's h5dump where it is installed.
#include "fungi/store/export.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "fungi/base/atomic_file.h"
#include "fungi/checkpoint/npy.h"
#include "tests/store/fixture.h"

namespace {
bool disk_refuses = false;
}

// Stands before the system's own, so that a disk may refuse to keep what was written.
extern "C" int fsync(int descriptor) {
  if (!disk_refuses) return static_cast<int>(::syscall(SYS_fsync, descriptor));
  errno = EIO;
  return -1;
}

namespace fungi::test {
namespace {

// A store of the example's rows, some of them with shorter ids than others.
Store example_store(const fs::path& folder, StoreType type) {
  StoreSpec spec = example_spec();
  spec.type = type;
  std::vector<StoreSample> samples = example_samples(0, 30);
  samples[11].id = "11.jpg";
  Extraction run;
  run(folder, samples, {.shard_size = 8}, spec);
  return Store::open(folder);
}

// The rows as the store has them, as numpy and HDF5 write float32.
std::string float_bytes(const Store& store, const char* block) {
  const Matrix<float> rows = store.load(block, false).features;
  return {reinterpret_cast<const char*>(rows.data()), rows.rows() * rows.cols() * sizeof(float)};
}

// Texts as numpy has them: four bytes per character, all as long as the longest.
std::string wide(const std::vector<std::string>& texts) {
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  std::string out;
  for (std::string text : texts) {
    text.resize(longest);
    for (const char c : text) out += std::string{c, '\0', '\0', '\0'};
  }
  return out;
}

TEST(Export, NpzHoldsEverything) {
  Folder tmp;
  for (const StoreType type : {StoreType::float32, StoreType::float16}) {
    SCOPED_TRACE(to_string(type));
    const Store store = example_store(tmp / to_string(type), type);
    export_npz(store, tmp / "out.npz");
    const NpzFile npz = NpzFile::open(tmp / "out.npz");
    EXPECT_EQ(npz.names(),
              (std::vector<std::string>{"embedding", "kl", "ids", "labels", "classes"}));
    for (const auto& [block, width] : {std::pair("embedding", 5u), std::pair("kl", 3u)}) {
      EXPECT_EQ(npz.shape(block), (std::vector<size_t>{store.rows(), width}));
      const Matrix<float> rows = npz.read(block);
      const std::string bytes(reinterpret_cast<const char*>(rows.data()),
                              rows.rows() * rows.cols() * sizeof(float));
      EXPECT_TRUE(bytes == float_bytes(store, block)) << block;
    }
    EXPECT_EQ(npz.read_integers("labels"), store.labels());
    EXPECT_EQ(npz.shape("ids"), std::vector<size_t>{store.rows()});
    EXPECT_EQ(npz.shape("classes"), std::vector<size_t>{3});
    const std::string file = read_file(tmp / "out.npz");  // our own reader reads no texts
    EXPECT_NE(file.find(wide(store.ids())), std::string::npos);
    EXPECT_NE(file.find(wide({"ant", "bee", "cat"})), std::string::npos);
    export_npz(store, tmp / "again.npz");
    EXPECT_EQ(file, read_file(tmp / "again.npz"));
  }
}

TEST(Export, NpzRefusesABlockNamedLikeTheIds) {
  Folder tmp;
  StoreSpec spec = example_spec();
  spec.blocks[1].name = "labels";
  Extraction run;
  run(tmp / "s", example_samples(0, 5), {.shard_size = 8}, spec);
  EXPECT_ERROR("a block is named 'labels'", export_npz(Store::open(tmp / "s"), tmp / "o.npz"));
  EXPECT_FALSE(fs::exists(tmp / "o.npz"));
}

TEST(Export, TwoHdf5ExportsDoNotMix) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 5));
  const Store store = Store::open(tmp / "s");
  fs::create_directory(tmp / "h5");
  AtomicFile other(tmp / "h5/kl.h5");
  EXPECT_ERROR("another program is writing this file", export_hdf5(store, tmp / "h5"));
  other.finish();
  EXPECT_EQ(export_hdf5(store, tmp / "h5").size(), 2u);
}

TEST(Export, Hdf5HasThePapersNames) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  Folder tmp;
  const Store store = example_store(tmp / "s", StoreType::float32);
  const auto files = export_hdf5(store, tmp / "h5", {.split = "train"});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].filename(), "train-embeddings.h5");
  EXPECT_EQ(files[1].filename(), "train-kl.h5");
  EXPECT_EQ(std::distance(fs::directory_iterator(tmp / "h5"), {}), 2) << "temporary files are left";
  // Contiguous little-endian data: the rows must lie in the file as they are.
  EXPECT_NE(read_file(files[0]).find(float_bytes(store, "embedding")), std::string::npos);
  EXPECT_NE(read_file(files[1]).find(float_bytes(store, "kl")), std::string::npos);
  EXPECT_NE(read_file(files[1]).find("attn_proj"), std::string::npos);
  std::vector<uint32_t> targets(store.labels().begin(), store.labels().end());
  const std::string label_bytes(reinterpret_cast<const char*>(targets.data()), targets.size() * 4);
  const std::string embeddings = read_file(files[0]);
  EXPECT_NE(embeddings.find(label_bytes), std::string::npos);
  for (const char* name : {"embeddings", "targets", "ids", "classes", "ant"}) {
    EXPECT_NE(embeddings.find(name), std::string::npos) << name;
  }
  const Store half = example_store(tmp / "half", StoreType::float16);
  EXPECT_NE(read_file(export_hdf5(half, tmp / "h5-half")[1]).find(float_bytes(half, "kl")),
            std::string::npos);
  EXPECT_ERROR("cannot be the name", export_hdf5(store, tmp / "h5", {.split = "", .layer = "a/b"}));
  write_file(tmp / "file", "x");
  EXPECT_ERROR("cannot be made", export_hdf5(store, tmp / "file/h5"));
}

TEST(Export, Hdf5NamesGradientsAsTold) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 5), {.shard_size = 8});
  const Store store = Store::open(tmp / "s");
  EXPECT_NE(read_file(export_hdf5(store, tmp / "h5")[1]).find("attn_proj"), std::string::npos);
  const std::string other = read_file(export_hdf5(store, tmp / "own", {.layer = "mine"})[1]);
  EXPECT_NE(other.find("mine"), std::string::npos);
  EXPECT_EQ(other.find("attn_proj"), std::string::npos);
}

TEST(Export, Hdf5IsOnTheDiskBeforeItHasItsName) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const Store store = Store::open(tmp / "s");
  disk_refuses = true;
  const std::string text = error_of([&] { export_hdf5(store, tmp / "h5"); });
  disk_refuses = false;
  EXPECT_NE(text.find("embeddings.h5: cannot be flushed"), std::string::npos) << text;
  EXPECT_TRUE(fs::is_empty(tmp / "h5"));
}

bool have_h5dump() { return std::system("h5dump --version >/dev/null 2>&1") == 0; }

std::string h5dump(const std::string& arguments, const fs::path& file) {
  const std::string command = "h5dump " + arguments + " " + file.string();
  std::string text;
  if (FILE* pipe = ::popen(command.c_str(), "r")) {
    char part[4096];
    while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
    EXPECT_EQ(::pclose(pipe), 0) << command;
  }
  return text;
}

// The strings of a dataset; its head has names in quotes, too.
std::vector<std::string> texts_in(const std::string& dump) {
  std::vector<std::string> texts;
  for (size_t at = dump.find('"', dump.find("DATA {")); at != std::string::npos;) {
    const size_t end = dump.find('"', at + 1);
    texts.push_back(dump.substr(at + 1, end - at - 1));
    at = dump.find('"', end + 1);
  }
  return texts;
}

TEST(Export, Hdf5AsH5dumpReadsIt) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  if (!have_h5dump()) GTEST_SKIP() << "there is no h5dump: install hdf5-tools";
  Folder tmp;
  for (const StoreType type : {StoreType::float32, StoreType::float16}) {
    SCOPED_TRACE(to_string(type));
    const Store store = example_store(tmp / to_string(type), type);
    export_hdf5(store, tmp / "h5");
    const fs::path embeddings = tmp / "h5/embeddings.h5", gradients = tmp / "h5/kl.h5";
    const std::string rows = std::to_string(store.rows());
    const std::string kl = h5dump("-d attn_proj", gradients);
    EXPECT_NE(kl.find("H5T_IEEE_F32LE"), std::string::npos) << kl;
    EXPECT_NE(kl.find("( " + rows + ", 3 )"), std::string::npos) << kl;
    for (const auto& [set, block, file] : {std::tuple("attn_proj", "kl", gradients),
                                           std::tuple("embeddings", "embedding", embeddings)}) {
      h5dump(std::string("-d ") + set + " -b LE -o " + (tmp / "bytes").string(), file);
      EXPECT_TRUE(read_file(tmp / "bytes") == float_bytes(store, block)) << set;
    }
    const std::string targets = h5dump("-d targets", embeddings);
    EXPECT_NE(targets.find("H5T_STD_U32LE"), std::string::npos) << targets;
    EXPECT_NE(targets.find("( " + rows + " )"), std::string::npos) << targets;
    EXPECT_EQ(texts_in(h5dump("-d ids", embeddings)), store.ids());
    EXPECT_EQ(texts_in(h5dump("-d classes", embeddings)), kClasses);
  }
}

TEST(Export, Hdf5SaysWhetherRowsHaveLengthOne) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  if (!have_h5dump()) GTEST_SKIP() << "there is no h5dump: install hdf5-tools";
  Folder tmp;
  size_t number = 0;
  for (const StoreType type : {StoreType::float32, StoreType::float16})
    for (const float first : {0.6f, 0.62f}) {  // one row of another length, in the first shard
      StoreSpec spec = example_spec();
      spec.type = type;
      const fs::path folder = tmp / std::to_string(number++);
      StoreWriter writer(folder, spec, {.shard_size = 4});
      for (const StoreWork& work : writer.plan(example_samples(0, 9), kClasses)) {
        StoreRows rows;
        for (const StoreBlock& block : spec.blocks) {
          rows.blocks.emplace_back(work.samples.size(), block.width);
          for (size_t p = 0; p < work.samples.size(); ++p) {
            rows.blocks.back()(p, p % 2) = work.samples[p] == 0 ? first : 0.6f;
            rows.blocks.back()(p, 2) = 0.8f;
          }
        }
        writer.put(work, rows);
      }
      writer.finish();
      export_hdf5(Store::open(folder), tmp / "h5");
      const std::string expected = first == 0.6f ? "(0): 1\n" : "(0): 0\n";
      for (const auto& [set, file] :
           {std::pair("attn_proj", "h5/kl.h5"), std::pair("embeddings", "h5/embeddings.h5")}) {
        const std::string flag = h5dump(std::string("-a /") + set + "/unit_rows", tmp / file);
        EXPECT_NE(flag.find(expected), std::string::npos) << to_string(type) << first << flag;
      }
    }
}

TEST(Export, Hdf5WithoutAllLabels) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  Folder tmp;
  Extraction run;
  auto samples = example_samples(0, 10);
  samples[0].label = samples[9].label = -1;
  run.fails = [](const std::string&) { return false; };
  run(tmp / "some", samples);
  EXPECT_ERROR("2 of 10 rows have no label", export_hdf5(Store::open(tmp / "some"), tmp / "h5"));
  for (StoreSample& sample : samples) sample.label = -1;
  run(tmp / "none", samples);
  const auto files = export_hdf5(Store::open(tmp / "none"), tmp / "h5");
  EXPECT_EQ(read_file(files[0]).find("targets"), std::string::npos);
}

}  // namespace
}  // namespace fungi::test
