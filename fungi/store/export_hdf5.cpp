// SPDX-License-Identifier: Apache-2.0
// HDF5 through the C library: one file per block, written shard by shard to a temporary name.
// Object times are left out, so that equal stores give equal files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/store/export.h"

#ifdef FUNGI_HAVE_HDF5
#include <hdf5.h>

#endif

namespace fungi {

#ifndef FUNGI_HAVE_HDF5

bool have_hdf5() { return false; }

std::vector<std::filesystem::path> export_hdf5(const Store& store, const std::filesystem::path&,
                                               const Hdf5Options&) {
  fail("this build of fungi cannot write HDF5", store.folder().string(),
       "build it with libhdf5-dev installed (-DFUNGI_HDF5=ON), or export to .npz");
}

#else

bool have_hdf5() { return true; }

namespace {

namespace fs = std::filesystem;

// The library prints its errors unless told not to; ours are exceptions.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Quiet(const Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// A handle of any kind, with the function that closes it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& place) : id_(id), close_(close) {
    if (id < 0) fail("the HDF5 library refused to make an object", place, "check the free space");
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void check(herr_t status, const std::string& place) {
  if (status < 0) fail("the HDF5 library could not write", place, "check the free space");
}

// One file: datasets are added, then finish() closes it and gives it its name.
class Output {
 public:
  explicit Output(const fs::path& path) : path_(path), place_(path.string()), bytes_(path) {
    file_ = H5Fcreate(bytes_.hand_over().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file_ < 0)
      fail("the file cannot be created", place_, "check the folder, its permissions and its space");
  }
  ~Output() {
    if (file_ >= 0) H5Fclose(file_);
  }
  Output(const Output&) = delete;

  void add_rows(const Store& store, const StoreBlock& block, const std::string& name) {
    const int rank = block.rows == 1 ? 2 : 3;  // [n, width] or [n, rows, width]
    const hsize_t rows = rank == 2 ? block.width : block.rows;
    const hsize_t sizes[3] = {store.rows(), rows, block.width};
    const Handle space(H5Screate_simple(rank, sizes, nullptr), H5Sclose, place_);
    const Handle set = dataset(name, H5T_IEEE_F32LE, space);
    bool unit = true;
    for (size_t shard = 0; shard < store.shards(); ++shard) {
      const Store::Mapped part = store.map(block.name, shard);
      if (part.rows.rows == 0) continue;
      const hsize_t start[3] = {part.first_row, 0, 0},
                    count[3] = {part.rows.rows, rows, block.width};
      const Handle memory(H5Screate_simple(rank, count, nullptr), H5Sclose, place_);
      check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr), place_);
      check(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, part.rows.data), place_);
      unit =
          unit && rows_have_unit_length({part.rows.data, part.rows.rows * block.rows, block.width});
    }
    const int8_t flag = unit ? 1 : 0;
    const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose, place_);
    const Handle attribute(
        H5Acreate2(set, "unit_rows", H5T_STD_I8LE, scalar, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
        place_);
    check(H5Awrite(attribute, H5T_NATIVE_INT8, &flag), place_);
    check(H5Dflush(set), place_);  // what waits in it would fail unseen when it is closed
  }

  void add_targets(const std::vector<int64_t>& labels) {
    const std::vector<uint32_t> targets(labels.begin(), labels.end());
    const Handle space = line(targets.size());
    const Handle set = dataset("targets", H5T_STD_U32LE, space);
    check(H5Dwrite(set, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, targets.data()), place_);
    check(H5Dflush(set), place_);
  }

  void add_texts(const std::string& name, const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, place_);
    check(H5Tset_size(type, H5T_VARIABLE), place_);
    check(H5Tset_cset(type, H5T_CSET_UTF8), place_);
    const Handle space = line(texts.size());
    const Handle set = dataset(name, type, space);
    check(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), place_);
    check(H5Dflush(set), place_);
  }

  fs::path finish() {
    check(H5Fclose(std::exchange(file_, -1)), place_);
    bytes_.finish();
    return path_;
  }

 private:
  static bool rows_have_unit_length(View<const float> rows) {
    constexpr double kTolerance = 1e-3;  // what float16 keeps of a unit vector
    for (size_t i = 0; i < rows.rows; ++i) {
      double sum = 0;
      for (size_t j = 0; j < rows.cols; ++j) sum += double(rows(i, j)) * double(rows(i, j));
      if (std::abs(std::sqrt(sum) - 1) > kTolerance) return false;
    }
    return true;
  }

  Handle line(size_t count) const {
    const hsize_t size = count;
    return Handle(H5Screate_simple(1, &size, nullptr), H5Sclose, place_);
  }

  Handle dataset(const std::string& name, hid_t type, hid_t space) const {
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, place_);
    check(H5Pset_obj_track_times(properties, false), place_);
    return Handle(
        H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT),
        H5Dclose, place_);
  }

  fs::path path_;
  std::string place_;
  AtomicFile bytes_;
  hid_t file_ = -1;
};

}  // namespace

std::vector<fs::path> export_hdf5(const Store& store, const fs::path& folder,
                                  const Hdf5Options& options) {
  const std::vector<int64_t>& labels = store.labels();
  const auto unlabelled = std::count(labels.begin(), labels.end(), -1);
  const bool targets = unlabelled == 0 && !labels.empty();
  if (unlabelled > 0 && unlabelled < ptrdiff_t(labels.size())) {
    fail(fmt::format("{} of {} rows have no label; targets need one for each, or none", unlabelled,
                     labels.size()),
         store.folder().string(), "export to .npz, which marks them with -1");
  }
  if (options.layer.find('/') != std::string::npos) {
    fail(fmt::format("'{}' cannot be the name of a dataset", options.layer), "layer");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("the folder cannot be made: " + error.message(), folder.string());

  // A file whose last bytes the disk refused cannot be closed, and the library, which tries again
  // at the program's exit, then loops or crashes. All that we open we close ourselves.
  static const herr_t never_at_exit = H5dont_atexit();
  static_cast<void>(never_at_exit);
  const Quiet quiet;
  std::vector<fs::path> files;
  const std::string prefix = options.split.empty() ? "" : options.split + "-";
  for (const StoreBlock& block : store.manifest().spec.blocks) {
    const bool embedding = block.name == "embedding";
    Output output(folder / (prefix + (embedding ? "embeddings" : block.name) + ".h5"));
    std::string layer = options.layer;  // of several layers the block's own, as "mlp_fc2"
    if (const std::string_view own = split_layer(block.name).second; !own.empty()) {
      layer = own.substr(own.find('.', own.find('.') + 1) + 1);
      std::replace(layer.begin(), layer.end(), '.', '_');
    }
    output.add_rows(store, block, embedding ? "embeddings" : layer);
    if (embedding && targets) output.add_targets(labels);
    if (embedding) output.add_texts("ids", store.ids());
    if (embedding && !store.classes().empty()) output.add_texts("classes", store.classes());
    files.push_back(output.finish());
  }
  return files;
}

#endif

}  // namespace fungi
