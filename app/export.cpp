// SPDX-License-Identifier: Apache-2.0
// fungi export STORE OUTPUT: one .npz, or HDF5 files with the names the paper's scripts read.
#include "fungi/store/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "app/features.h"
#include "fungi/retrieve/outside.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

// Files of the same split that an earlier export left: their rows may be those of other pictures.
std::vector<fs::path> others_of_split(const fs::path& folder, const std::string& split,
                                      const std::vector<fs::path>& written) {
  const std::string prefix = split.empty() ? "" : split + "-";
  std::vector<fs::path> others;
  std::error_code unseen;  // a folder that cannot be listed may be written to
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unseen)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".h5") &&
        name.find('-', prefix.size()) == std::string::npos &&
        std::find(written.begin(), written.end(), folder / name) == written.end())
      others.push_back(entry.path());
  }
  std::sort(others.begin(), others.end());
  return others;
}

}  // namespace

Verb add_export(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string store, out, format = "npz";
    Hdf5Options hdf5;
  };
  self = parent.add_subcommand(
      "export", "Write a store for other programs: .npz, or HDF5 as the paper's scripts read it");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Feature store")->required();
  self->add_option("-o,--output,output", a->out,
                   "The .npz file, or the folder for HDF5 files, as a word or with -o")
      ->required();
  auto* format = self->add_option("--format", a->format, "npz or hdf5")
                     ->capture_default_str()
                     ->check(CLI::IsMember({"npz", "hdf5"}));
  auto* split =
      self->add_option("--split", a->hdf5.split, "HDF5: name of the split, in the file names");
  auto* layer =
      self->add_option("--layer-name", a->hdf5.layer,
                       "HDF5: name of the gradients' dataset; without it that of the store's "
                       "layer: attn_qkv, attn_proj, mlp_fc1 or mlp_fc2");
  self->parse_complete_callback([a, split, layer, format] {
    if (a->out.ends_with(".h5") || a->out.ends_with(".hdf5"))
      throw CLI::ValidationError(
          "output",
          fmt::format("HDF5 goes into a folder with a file for each block, found the file "
                      "name '{}': give a folder{}",
                      shown(a->out), a->format == "npz" ? " and --format hdf5" : ""));
    if (a->out.ends_with(".npz") && a->format == "hdf5")
      throw CLI::ValidationError(format->get_name(),
                                 "is hdf5, but the name of the output ends in "
                                 ".npz: leave one of the two out");
    if (a->hdf5.split.find('/') != std::string::npos)
      throw CLI::ValidationError("--split", "is a part of file names: expected no '/' in it");
    if (a->hdf5.layer == "." || a->hdf5.layer.find('/') != std::string::npos)
      throw CLI::ValidationError("--layer-name",
                                 "expected a name without '/', found " + shown(a->hdf5.layer));
    for (const CLI::Option* option : {split, layer})
      if (a->format == "npz" && option->count() > 0)
        throw CLI::ValidationError(
            option->get_name(),
            "names what stands in HDF5 files: give --format hdf5, or leave it out");
  });
  return [a] {
    const Store store = Store::open(a->store);
    require_outside(store, a->out);
    if (a->format == "npz") {
      export_npz(store, a->out);
      fmt::print("{}\n", shown(a->out));
    } else {
      const auto files = export_hdf5(store, a->out, a->hdf5);
      for (const auto& file : files) fmt::print("{}\n", shown(file.string()));
      for (const auto& file : others_of_split(a->out, a->hdf5.split, files))
        say("note: {} is no block of this store: it was there before\n", shown(file.string()));
    }
    return int(kOk);
  };
}

}  // namespace fungi::app
