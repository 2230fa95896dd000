// SPDX-License-Identifier: Apache-2.0
// fungi info [FOLDER]: what a store, an index or a PCA holds; without one, what this machine can
// do, which kernels were chosen, and what was compiled in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/words.h"
#include "fungi/input/image.h"
#include "fungi/input/sound.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/store/export.h"
#include "fungi/store/store.h"

namespace fungi::app {
namespace {

int show_machine(bool json) {
  const Cpu& c = cpu();
  std::vector<std::string> supported;
  for (Isa isa : supported_isas()) supported.push_back(to_string(isa));
  const Isa chosen = best_isa();
  const Precision precision = kernel::fastest_precision(chosen);
  const std::string table = kernel::kernel_for(chosen, precision).name;
  if (json) {
    const nlohmann::json out{{"version", FUNGI_VERSION},
                             {"cpu", c.name},
                             {"physical_cores", c.physical_cores},
                             {"logical_cores", c.logical_cores},
                             {"quota", c.quota},
                             {"threads", default_threads()},
                             {"l1d_bytes", c.l1d_bytes},
                             {"l2_bytes", c.l2_bytes},
                             {"l3_bytes", c.l3_bytes},
                             {"supported", supported},
                             {"isa", to_string(chosen)},
                             {"precision", to_string(precision)},
                             {"kernel", table},
                             {"image_formats", image_formats()},
                             {"sound_formats", sound_formats()},
                             {"hdf5", have_hdf5()},
                             {"avx512_bf16", c.avx512_bf16},
                             {"amx_refused", c.amx_refused}};
    print_json(out);
    return kOk;
  }
  fmt::print(
      "fungi      {}\ncpu        {}\ncores      {} physical, {} logical{}\ncaches     L1d {}, L2 "
      "{}, "
      "L3 {}\n",
      FUNGI_VERSION, c.name, c.physical_cores, c.logical_cores,
      c.quota ? fmt::format("; this container may use {}", c.quota) : "",
      human_bytes(double(c.l1d_bytes)), human_bytes(double(c.l2_bytes)),
      human_bytes(double(c.l3_bytes)));
  fmt::print("supported  {}\nchosen     {} ({}); FUNGI_ISA forces another\n",
             fmt::join(supported, " "), table, to_string(precision));
  const std::string sounds = fmt::format("{}", fmt::join(sound_formats(), ", "));
  fmt::print("pictures   {}\nsounds     {}\nexports    npz{}\n", fmt::join(image_formats(), ", "),
             sounds.empty() ? "none: built without libsndfile" : sounds,
             have_hdf5() ? ", hdf5" : "");
  if (c.amx_refused)
    fmt::print(
        "amx        the processor has it, the system does not grant it: Linux 5.16 or newer is "
        "needed, and a hypervisor or container that lets it through\n");
  return kOk;
}

int show_index(const std::string& folder, bool json) {
  const FeatureIndex opened = FeatureIndex::open(folder);
  const Index& index = opened.index();
  const Reduction& r = opened.reduction();
  if (json)
    print_json({{"index", folder},
                {"kind", to_string(index.kind())},
                {"metric", to_string(index.metric())},
                {"features", r.features()},
                {"rows", index.rows()},
                {"columns", index.width()},
                {"pca_applied", r.pca().has_value()},
                {"model", r.origin().spec.model_path}});
  else
    fmt::print(
        "{}: {} index of {} rows for 'fungi search', {}\nfeatures   {}: {} columns{}\nmodel      "
        "{}\n",
        shown(folder), to_string(index.kind()), index.rows(), to_string(index.metric()),
        r.features(), index.width(),
        r.pca() ? fmt::format(", {} before its PCA", r.input_width()) : "",
        shown(r.origin().spec.model_path));
  return kOk;
}

int show_pca(const std::string& folder, bool json) {
  const Reduction r = Reduction::open(folder);
  if (!r.pca())
    fail("the folder describes vectors of a store, but holds neither a PCA nor an index", folder,
         "make it again with 'fungi pca' or 'fungi index'");
  if (json)
    print_json({{"pca", folder},
                {"features", r.features()},
                {"input_columns", r.input_width()},
                {"dim", r.output_width()},
                {"fitted_rows", r.pca()->fitted_rows()},
                {"model", r.origin().spec.model_path}});
  else
    fmt::print(
        "{}: PCA for 'fungi pca --apply', fitted on {} rows\nfeatures   {}: {} columns to {}\n"
        "model      {}\n",
        shown(folder), r.pca()->fitted_rows(), r.features(), r.input_width(), r.output_width(),
        shown(r.origin().spec.model_path));
  return kOk;
}

}  // namespace

Verb add_info(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "info", "Say what a store, an index or a PCA holds, or what this machine can do");
  struct Arguments {
    std::string folder;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  self->add_option("folder", a->folder, "A store, an index or a PCA; nothing: this machine");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    if (a->folder.empty()) return show_machine(a->json);
    std::error_code ignored;  // then it is no PCA
    const auto holds = [&](const char* name) {
      return std::filesystem::is_regular_file(std::filesystem::path(a->folder) / name, ignored);
    };
    const auto require_finished = [&](const char* mark) {
      if (holds(mark))
        fail("an index or PCA that is being written, or was when its program ended", a->folder,
             "repeat the command that writes it");
    };
    if (is_index(a->folder)) return show_index(a->folder, a->json);  // also while it is replaced
    require_finished("unfinished");
    if (holds("features.json")) return show_pca(a->folder, a->json);
    require_finished("unfinished-pca");
    const StoreInfo info = describe_store(a->folder);
    fmt::print("{}\n", worded(a->json ? to_json(info) : to_text(info)));
    return int(kOk);
  };
}

}  // namespace fungi::app
