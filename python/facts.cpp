// SPDX-License-Identifier: Apache-2.0
// info: what a folder holds, and what this machine can do.
#include <nlohmann/json.hpp>

#include "fungi/base/cpu.h"
#include "fungi/input/image.h"
#include "fungi/input/sound.h"
#include "fungi/kernel/kernel.h"
#include "fungi/store/export.h"
#include "python/bind.h"

namespace fungi::python {
namespace {

nb::dict machine() {
  const Cpu& c = cpu();
  const Isa chosen = best_isa();
  const Precision precision = kernel::fastest_precision(chosen);
  std::vector<std::string> supported;
  for (const Isa isa : supported_isas()) supported.push_back(to_string(isa));
  nb::dict d;
  d["version"] = FUNGI_VERSION;
  d["cpu"] = c.name;
  d["physical_cores"] = c.physical_cores;
  d["logical_cores"] = c.logical_cores;
  d["quota"] = c.quota;
  d["threads"] = default_threads();
  d["l1d_bytes"] = c.l1d_bytes;
  d["l2_bytes"] = c.l2_bytes;
  d["l3_bytes"] = c.l3_bytes;
  d["supported"] = supported;
  d["isa"] = to_string(chosen);
  d["precision"] = to_string(precision);
  d["kernel"] = kernel::kernel_for(chosen, precision).name;
  d["image_formats"] = image_formats();
  d["sound_formats"] = sound_formats();
  d["hdf5"] = have_hdf5();
  d["avx512_bf16"] = c.avx512_bf16;
  d["amx_refused"] = c.amx_refused;
  return d;
}

nb::object pca_facts(const std::filesystem::path& folder) {
  const Reduction r = Reduction::open(folder);
  if (!r.pca()) return nb::none();
  nb::dict d;
  d["pca"] = to_str(folder.string());
  d["features"] = r.features();
  d["input_columns"] = r.input_width();
  d["dim"] = r.output_width();
  d["fitted_rows"] = r.pca()->fitted_rows();
  d["model"] = to_str(r.origin().spec.model_path);
  return d;
}

}  // namespace

void add_facts(nb::module_& m) {
  m.def("machine", machine);
  m.def("pca_facts", pca_facts);
  m.def("is_index", [](const std::filesystem::path& folder) { return is_index(folder); });
  m.def("is_store", [](const std::filesystem::path& folder) { return is_store(folder); });
  m.def("store_facts", [](const std::filesystem::path& folder) {
    return to_python(nlohmann::json::parse(worded(to_json(describe_store(folder)))));
  });
}

}  // namespace fungi::python
