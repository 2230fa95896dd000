// SPDX-License-Identifier: Apache-2.0
// fungi bench: samples per second of a backbone, with or without the backward to its layer, or of
// whole features, as a share of what this machine's arithmetic can do, measured in the same run;
// and where the time goes.
#include "app/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/cli.h"
#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"
#include "fungi/feature/extractor.h"
#include "fungi/hub/pull.h"

namespace fungi::app {
namespace {

// More than the backbone and its backward: views, losses, projection.
bool whole_features(const std::vector<std::string>& objectives) {
  return !objectives.empty() && objectives != std::vector<std::string>{"kl"};
}

Matrix<float> random_inputs(const Architecture& a, size_t n) {
  Matrix<float> pixels(n, a.channels * a.input_h * a.input_w);
  const RandomStream random(7, "bench");
  for (size_t i = 0; i < n * pixels.cols(); ++i)
    pixels.data()[i] = float(random.uniform(i) * 4 - 2);
  return pixels;
}

size_t parse_side(const std::string& text, size_t patch) {
  size_t side = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, side);
  if (error != std::errc() || last != end || side == 0 || side > 4096 || side % patch)
    fail(fmt::format("expected a multiple of the patch ({}) up to 4096, found '{}'", patch, text),
         "--set size", "e.g. --set size=448 or --set size=448x224");
  return side;
}

// A record by name, with those facts that are not in the name.
Architecture stated_architecture(const std::string& name, const StatedFacts& facts) {
  Architecture a = named_architecture(name);
  for (const auto& [key, value] : facts) {
    if (key == "activation") {
      a.activation = parse_activation(value);
    } else if (key == "pooling") {
      a.pooling = parse_pooling(value);
    } else if (key == "size") {
      const size_t x = value.find('x');
      a.input_h = parse_side(value.substr(0, x), a.patch_h);
      a.input_w = x == std::string::npos ? a.input_h : parse_side(value.substr(x + 1), a.patch_w);
    } else {
      fail(fmt::format("'{}' cannot be stated of {}: it has random weights", key, name), "--set",
           "choose one of: activation, pooling, size; or give a checkpoint file");
    }
  }
  return a;
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace

BenchRate bench_backbone(const Backbone& backbone, bool backward, size_t batch, double seconds,
                         Pool& pool) {
  const Architecture& a = backbone.architecture();
  const Matrix<float> pixels = random_inputs(a, batch);
  std::vector<Workspace> workspaces(pool.threads());
  std::vector<double> rates(pool.threads()), used(rates), ran(rates);
  pool.parallel_for(pool.threads(), 1, [&](size_t i, size_t, unsigned) {
    using Clock = std::chrono::steady_clock;
    Matrix<float> e(batch, a.embedding_width), d(batch, a.embedding_width);
    std::vector<LayerGradient> gradients(backbone.layers().size());
    auto once = [&] {
      backbone.forward(Inputs::images(pixels), workspaces[i], e);
      if (!backward) return;
      for (size_t k = 0; k < batch * e.cols(); ++k)
        d.data()[k] = e.data()[k];  // a KL-like gradient: any dense one costs the same
      backbone.backward(d, workspaces[i], gradients);
    };
    once();
    workspaces[i].stages.clear();
    const auto start = Clock::now();
    double elapsed = 0;
    size_t done = 0;
    const double before = thread_seconds();
    while (elapsed < seconds) {
      once();
      done += batch;
      elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    }
    rates[i] = double(done) / elapsed;
    used[i] = thread_seconds() - before, ran[i] = double(done);
  });
  BenchRate result;
  result.gflop = a.forward_flops(a.tokens()) / 1e9;
  for (double rate : rates) result.samples_per_second += rate;
  result.samples_per_processor_second =
      std::accumulate(ran.begin(), ran.end(), 0.0) / std::accumulate(used.begin(), used.end(), 0.0);
  for (const Workspace& w : workspaces) result.stages.add(w.stages);
  return result;
}

namespace {

void print_table(const Stages& stages) {
  double total = 0;
  for (const auto& row : stages.rows()) total += row.own;
  auto rows = stages.rows();
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.own > y.own; });
  fmt::print("\n{:<12}{:>10}{:>12}{:>8}{:>10}\n", "stage", "own s", "inclusive s", "share",
             "calls");
  for (const auto& row : rows)
    fmt::print("{:<12}{:>10.3f}{:>12.3f}{:>7.1f}%{:>10}\n", row.name, row.own, row.inclusive,
               100 * row.own / total, row.calls);
}

int run(const BenchArguments& args) {
  if (!args.presets.empty()) return bench_presets(args);
  const std::vector<std::string> objectives = objective_list(args.objectives);
  const bool backward = !objectives.empty();
  const bool features = whole_features(objectives);
  ExtractorOptions looks;
  looks.objectives = objectives;
  const BackboneOptions options = backbone_for(looks, args.model.backbone());
  Pool pool(args.model.threads.count());
  const auto start = std::chrono::steady_clock::now();
  const Backbone backbone = open_to_bench(args.model, options, pool);
  const double load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Notes notes{.shown = !args.json};
  notes.add(backbone.notes());
  const size_t batch = args.batch ? args.batch : backbone.preferred_batch();

  const auto peak_gflops = [&] {
    return kernel::measure_peak_gflops(backbone.products(), pool.threads(),
                                       std::min(0.5, args.seconds));
  };
  const double peak_before = peak_gflops();
  const BenchRate m = features ? bench_features(backbone, objectives, Preset::native, args.seconds, pool)
                               : bench_backbone(backbone, backward, batch, args.seconds, pool);
  // The better of two, so that a neighbour who slows one of them does not raise our share.
  const double peak = std::max(peak_before, peak_gflops());
  const double gflop = m.gflop, share = m.samples_per_second * gflop / peak;
  const std::string precision = to_string(*backbone.options().precision),
                    isa = to_string(backbone.options().isa),
                    named =
                        objectives.empty() ? "none" : fmt::format("{}", fmt::join(objectives, " "));
  if (args.json) {
    nlohmann::json stages = nlohmann::json::array();
    for (const auto& row : m.stages.rows())
      stages.push_back({{"name", row.name},
                        {"own_seconds", row.own},
                        {"inclusive_seconds", row.inclusive},
                        {"calls", row.calls}});
    const nlohmann::json out{{"model", args.model.model},
                             {"objectives", named},
                             {"samples_per_second", m.samples_per_second},
                             {"samples_per_processor_second", m.samples_per_processor_second},
                             {"views_per_sample", m.views},
                             {"gflop_per_sample", gflop},
                             {"peak_gflops", peak},
                             {"share_of_peak", share},
                             {"peak_rss_mb", peak_rss_mb()},
                             {"load_seconds", load_seconds},
                             {"isa", isa},
                             {"kernel", backbone.products().name},
                             {"precision", precision},
                             {"threads", pool.threads()},
                             {"batch", batch},
                             {"notes", notes.list},
                             {"stages", stages}};
    print_json(out);
    return kOk;
  }
  const std::string what =
      features ? fmt::format("features embedding+{}, {} views", fmt::join(objectives, "+"), m.views)
      : backward ? fmt::format("embedding and gradient of {}{}", backbone.layer()->name(),
                               backbone.layers().size() > 1
                                   ? fmt::format(" and {} other layers", backbone.layers().size() - 1)
                                   : "")
                 : "embedding alone";
  fmt::print("{} ({}), {} threads, batches of {}, {}\n", shown(args.model.model),
             backbone.products().name, pool.threads(), batch, what);
  fmt::print(
      "{:.2f} samples/s = {:.0f} GFLOP/s, {:.1f} % of the {:.0f} GFLOP/s measured here; peak "
      "memory {:.0f} MB; loaded in {:.2f} s\n",
      m.samples_per_second, m.samples_per_second * gflop, 100 * share, peak, peak_rss_mb(),
      load_seconds);
  print_table(m.stages);
  return kOk;
}

}  // namespace

Backbone open_to_bench(const ModelOptions& model, const BackboneOptions& options, Pool& pool) {
  std::error_code ignored;  // then it is the name of an architecture, or none
  const std::string pulled = pulled_model(model.model);
  Backbone backbone = std::filesystem::exists(pulled, ignored)
                          ? Backbone::open(pulled, options, pool)
                          : Backbone::assemble(stated_architecture(pulled, options.stated_facts),
                                               RandomTensors(1), options, pool);
  if (backbone.architecture().input == InputKind::token_ids)
    fail("text backbones have no fixed size to measure", model.model,
         "give an image or audio backbone");
  return backbone;
}

Verb add_bench(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "bench", "Measure a backbone: a checkpoint, or random weights by architecture name");
  auto args = std::make_shared<BenchArguments>();
  args->model
      .add_to(
          *self,
          "Checkpoint file or folder, or random weights by name: vit_SIZE_patchN_PIXELS or "
          "deit_SIZE_patchN_PIXELS (tiny, small, base, large, huge), dino_vitXN (t, s, b, l, g), "
          "dinov2_vitX14 (s, b, l), e.g. vit_base_patch16_224, dino_vits8, dinov2_vitl14")
      ->required();
  args->model.add_layers(*self);
  self->footer(objective_parameters());
  self->add_option("--objectives", args->objectives,
                   "none: the embedding alone; kl: with the backward to the layer; others, as for "
                   "extract: the whole features of random pictures")
      ->capture_default_str()
      ->check(objective_word());
  self->add_option("--seconds", args->seconds, "How long to measure")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 600.0));
  self->add_option("--batch", args->batch, "Views per call; 0 = what suits the caches")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  self->add_option("--presets", args->presets,
                   "Side by side, whole features as of extract: each with its own views and "
                   "precision (native, paper, lib, fast)")
      ->check(CLI::IsMember({"native", "paper", "lib", "fast"}));
  self->add_flag("--json", args->json, "Print JSON");
  self->parse_complete_callback([args, self] {
    if (!args->presets.empty()) {
      if (self->get_option("--objectives")->count() == 0)
        args->objectives = ExtractorOptions().objectives;
      if (objective_list(args->objectives).empty())
        throw CLI::ValidationError("--presets", "the embedding alone is the same in all of them");
    }
    for (const char* option : {"--layer", "--layers"})
      if (objective_list(args->objectives).empty() && self->get_option(option)->count() > 0)
        throw CLI::ValidationError(option, "the embedding alone has no gradient: leave it out");
    if (args->batch > 0 &&
        (!args->presets.empty() || whole_features(objective_list(args->objectives))))
      throw CLI::ValidationError("--batch",
                                 "whole features choose their own batches: leave --batch out, or "
                                 "measure --objectives none or kl");
  });
  return [args] { return run(*args); };
}

}  // namespace fungi::app
