// SPDX-License-Identifier: Apache-2.0
// Exports read back: .npz by our own reader, HDF5 by the library's h5dump where it is installed.
#include "fungi/feature/export.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "fungi/checkpoint/npy.h"
#include "tests/feature/store_fixture.h"

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

TEST(Export, NpzHoldsEverything) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const Store store = Store::open(tmp / "s");
  export_npz(store, tmp / "out.npz");
  const NpzFile npz = NpzFile::open(tmp / "out.npz");
  EXPECT_EQ(npz.names(), (std::vector<std::string>{"embedding", "kl", "ids", "labels", "classes"}));
  const Matrix<float> kl = npz.read("kl");
  const FeatureSet raw = store.load("kl", false);
  ASSERT_EQ(kl.rows(), store.rows());
  for (size_t i = 0; i < kl.rows(); ++i) {
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(kl(i, j), raw.features(i, j));
  }
  EXPECT_EQ(npz.read_integers("labels"), store.labels());
  EXPECT_EQ(npz.shape("ids"), std::vector<size_t>{store.rows()});
  // The first id lies in the file as UCS-4.
  std::string wide;
  for (char c : store.ids()[0]) wide += std::string{c, '\0', '\0', '\0'};
  EXPECT_NE(read_file(tmp / "out.npz").find(wide), std::string::npos);
  export_npz(store, tmp / "again.npz");
  EXPECT_EQ(read_file(tmp / "out.npz"), read_file(tmp / "again.npz"));
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

TEST(Export, Hdf5HasThePapersNames) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  const Store store = Store::open(tmp / "s");
  const auto files = export_hdf5(store, tmp / "h5", {.split = "train"});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].filename(), "train-embeddings.h5");
  EXPECT_EQ(files[1].filename(), "train-kl.h5");
  EXPECT_EQ(std::distance(fs::directory_iterator(tmp / "h5"), {}), 2) << "temporary files are left";
  // Contiguous little-endian data: the rows must lie in the file as they are.
  const FeatureSet raw = store.load("kl", false);
  const std::string bytes(reinterpret_cast<const char*>(raw.features.data()),
                          raw.features.rows() * 3 * sizeof(float));
  EXPECT_NE(read_file(files[1]).find(bytes), std::string::npos);
  EXPECT_NE(read_file(files[1]).find("attn_proj"), std::string::npos);
  std::vector<uint32_t> targets(store.labels().begin(), store.labels().end());
  const std::string label_bytes(reinterpret_cast<const char*>(targets.data()), targets.size() * 4);
  const std::string embeddings = read_file(files[0]);
  EXPECT_NE(embeddings.find(label_bytes), std::string::npos);
  for (const char* name : {"embeddings", "targets", "ids", "classes", "ant"}) {
    EXPECT_NE(embeddings.find(name), std::string::npos) << name;
  }
  EXPECT_ERROR("cannot be the name", export_hdf5(store, tmp / "h5", {.split = "", .layer = "a/b"}));
  write_file(tmp / "file", "x");
  EXPECT_ERROR("cannot be made", export_hdf5(store, tmp / "file/h5"));
}

TEST(Export, Hdf5NamesGradientsAfterTheirLayer) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  for (const auto& [layer, name] : {std::pair{"blocks.1.attn.qkv", "attn_qkv"},
                                    {"blocks.11.attn.proj", "attn_proj"},
                                    {"blocks.0.mlp.fc1", "mlp_fc1"},
                                    {"blocks.1.mlp.fc2", "mlp_fc2"}}) {
    Folder tmp;
    StoreSpec spec = example_spec();
    spec.settings = fmt::format(R"({{"layer": "{}"}})", layer);
    Extraction run;
    run(tmp / "s", example_samples(0, 5), {.shard_size = 8}, spec);
    const Store store = Store::open(tmp / "s");
    EXPECT_NE(read_file(export_hdf5(store, tmp / "h5")[1]).find(name), std::string::npos) << layer;
    const std::string other = read_file(export_hdf5(store, tmp / "own", {.layer = "mine"})[1]);
    EXPECT_NE(other.find("mine"), std::string::npos);
    EXPECT_EQ(other.find(name), std::string::npos) << layer;
  }
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

TEST(Export, Hdf5AsH5dumpReadsIt) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  if (std::system("h5dump --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no h5dump: install hdf5-tools";
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30));
  export_hdf5(Store::open(tmp / "s"), tmp / "h5");
  auto dump = [&](const std::string& arguments) {
    const std::string command = "h5dump " + arguments;
    std::string text;
    if (FILE* pipe = ::popen(command.c_str(), "r")) {
      char part[4096];
      while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
      EXPECT_EQ(::pclose(pipe), 0) << command;
    }
    return text;
  };
  const std::string rows = std::to_string(run.totals.rows);
  const std::string kl = dump("-d attn_proj " + (tmp / "h5/kl.h5").string());
  EXPECT_NE(kl.find("H5T_IEEE_F32LE"), std::string::npos) << kl;
  EXPECT_NE(kl.find("( " + rows + ", 3 )"), std::string::npos) << kl;
  EXPECT_NE(kl.find("unit_rows"), std::string::npos) << kl;
  const std::string targets = dump("-d targets " + (tmp / "h5/embeddings.h5").string());
  EXPECT_NE(targets.find("H5T_STD_U32LE"), std::string::npos) << targets;
  EXPECT_NE(targets.find("( " + rows + " )"), std::string::npos) << targets;
  const std::string classes = dump("-d classes " + (tmp / "h5/embeddings.h5").string());
  EXPECT_NE(classes.find(R"("ant", "bee", "cat")"), std::string::npos) << classes;
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
