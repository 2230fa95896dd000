// SPDX-License-Identifier: Apache-2.0
// A feature store as Python has it: columns of blocks that are the mapped files themselves.
#include <nlohmann/json.hpp>

#include "python/bind.h"

namespace fungi::python {
namespace {

nb::object shard_array(const Store& store, const std::string& block, size_t shard) {
  const StoreBlock* found = find_block(store.manifest().spec.blocks, block);
  if (!found) store.select(block);  // an Error that names the choices
  Store::Mapped mapped = store.map(block, shard);
  auto* owner = new std::shared_ptr<const void>(std::move(mapped.owner));
  const nb::capsule capsule(
      owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
  const View<const float>& rows = mapped.rows;
  if (found->rows == 1) {
    const size_t shape[2] = {rows.rows, rows.cols};
    return nb::cast(nb::ndarray<nb::numpy, const float>(rows.data, 2, shape, capsule));
  }
  const size_t shape[3] = {rows.rows, found->rows, found->width};
  return nb::cast(nb::ndarray<nb::numpy, const float>(rows.data, 3, shape, capsule));
}

nb::object load(const Store& store, const std::string& features, bool normalise) {
  const std::vector<StoreBlock> blocks = store.select(features);
  require_side_by_side(blocks, "`features`");
  Matrix<float> rows;
  {
    const nb::gil_scoped_release free;
    rows = Matrix<float>(store.rows(), total_width(blocks));
    if (store.rows()) store.read(blocks, normalise, 0, rows);
  }
  return to_numpy(std::move(rows));
}

nb::list blocks_of(const Store& store) {
  nb::list list;
  for (const StoreBlock& b : store.manifest().spec.blocks)
    list.append(nb::make_tuple(b.name, b.width, b.rows));
  return list;
}

nb::list failed_of(const Store& store) {
  nb::list list;
  for (const FailedSample& f : store.failed())
    list.append(nb::make_tuple(to_str(f.id), f.stage, to_str(worded(f.reason)),
                               to_str(worded(f.hint))));
  return list;
}

}  // namespace

void add_stores(nb::module_& m) {
  nb::class_<Store>(m, "Store")
      .def_static(
          "open",
          [](const std::filesystem::path& folder, bool partial) {
            const nb::gil_scoped_release free;
            return Store::open(folder, partial);
          },
          nb::arg("folder"), nb::arg("allow_partial") = false)
      .def("rows", &Store::rows)
      .def("folder", [](const Store& s) { return to_str(s.folder().string()); })
      .def("ids", [](const Store& s) { return to_list(s.ids()); })
      .def("labels", [](const Store& s) { return to_numpy(std::vector<int64_t>(s.labels())); })
      .def("classes", [](const Store& s) { return to_list(s.classes()); })
      .def("blocks", blocks_of)
      .def("manifest",
           [](const Store& s) { return to_python(nlohmann::json::parse(to_json(s.manifest()))); })
      .def("float16",
           [](const Store& s) { return s.manifest().spec.type == StoreType::float16; })
      .def("shards", &Store::shards)
      .def("shard", shard_array, nb::arg("block"), nb::arg("shard"))
      .def("load", load, nb::arg("features"), nb::arg("normalise"))
      .def("failed", failed_of)
      .def("state", [](const Store& s, const std::string& name) { return to_numpy(s.state(name)); });
}

}  // namespace fungi::python
