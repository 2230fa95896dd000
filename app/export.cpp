// SPDX-License-Identifier: Apache-2.0
// fungi export STORE OUT: one .npz, or HDF5 files with the names the paper's scripts read.
#include "fungi/feature/export.h"

#include <fmt/format.h>

#include "app/cli.h"
#include "fungi/feature/store.h"

namespace fungi::app {

Verb add_export(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string store, out, format = "npz";
    Hdf5Options hdf5;
  };
  self = parent.add_subcommand(
      "export", "Write a store for other programs: .npz, or HDF5 as the paper's scripts read it");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Feature store")->required();
  self->add_option("out", a->out, "The .npz file, or the folder for HDF5 files")->required();
  self->add_option("--format", a->format, "npz or hdf5")
      ->capture_default_str()
      ->check(CLI::IsMember({"npz", "hdf5"}));
  self->add_option("--split", a->hdf5.split, "HDF5: name of the split, in the file names");
  self->add_option("--layer-name", a->hdf5.layer, "HDF5: name of the gradients' dataset")
      ->capture_default_str();
  return [a] {
    const Store store = Store::open(a->store);
    if (a->format == "npz") {
      export_npz(store, a->out);
      fmt::print("{}\n", a->out);
    } else {
      for (const auto& file : export_hdf5(store, a->out, a->hdf5))
        fmt::print("{}\n", file.string());
    }
    return int(kOk);
  };
}

}  // namespace fungi::app
