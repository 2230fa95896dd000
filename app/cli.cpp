// SPDX-License-Identifier: Apache-2.0
#include "app/cli.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "app/words.h"
#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/objective/factory.h"
#include "fungi/projection/projection.h"

namespace fungi::app {
namespace {

std::atomic<bool> stop_requested{false};

// The second Ctrl-C does not wait. A terminal that goes away says so more than once: the kernel and
// the shell both do.
void on_interrupt(int signal) {
  if (stop_requested.exchange(true) && signal != SIGHUP) std::_Exit(kInterrupted);
}

// Whether it is a layer of some model; which blocks there are, the model's file tells.
CLI::Validator layer_name() {
  const auto check = [](const std::string& text) -> std::string {
    if (text == "none")
      return "expected the name of a layer, found none: the embedding alone comes with "
             "--objectives none";
    try {
      constexpr size_t kMostBlocks = size_t{1} << 31;
      LayerId::parse(text, kMostBlocks);
      return "";
    } catch (const Error&) {
      return fmt::format(
          "expected blocks.N.attn.qkv, blocks.N.attn.proj, blocks.N.mlp.fc1 or blocks.N.mlp.fc2, "
          "found {}",
          text);
    }
  };
  return CLI::Validator(check, "");
}

// A name of a layer with stars: of some model.
CLI::Validator layer_pattern() {
  const auto check = [](const std::string& text) -> std::string {
    if (std::string name = text; text.find('*') == std::string::npos) return layer_name()(name);
    try {
      constexpr size_t kSomeBlocks = 1000;  // more than any model has
      parse_layers({text}, kSomeBlocks);
      return "";
    } catch (const Error& e) {
      return fmt::format("'{}' names no layer: {}", text, e.hint());
    }
  };
  return CLI::Validator(check, "");
}

CLI::Validator stated_key() {
  const auto check = [](const std::string& text) -> std::string {
    try {
      require_stated_key(text.substr(0, text.find('=')));
      return "";
    } catch (const Error& e) {
      return fmt::format("{}: {}", worded(e.message()), worded(e.hint()));
    }
  };
  return CLI::Validator(check, "");
}

}  // namespace

const std::atomic<bool>& stop_on_interrupt() {
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP})  // a script or nohup may have asked us to ignore them
    if (std::signal(signal, on_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
  return stop_requested;
}

void ProjectionArguments::add_to(CLI::App& verb) {
  verb.add_option(
          "--projection", kind,
          "sign, sign_reference, gaussian, sparse, factored, matrix (--given), or none: the "
          "whole gradient")
      ->capture_default_str()
      ->check(CLI::IsMember(projection_names()));
  verb.add_option("--projection-dim", rows,
                  "Rows of the projection; 0 = the embedding's width (extract --preset paper: the "
                  "model's)")
      ->capture_default_str();
}

void ProjectionArguments::require_consistent(const std::string& given) const {
  if (rows && (kind == "matrix" || kind == "none"))
    throw CLI::ValidationError(
        "--projection-dim",
        fmt::format("--projection {} has its own number of rows, found {}: leave it out", kind,
                    rows));
  if (kind == "matrix" && given.empty())
    throw CLI::ValidationError("--projection",
                               "matrix needs the matrix: name the file that holds it with --given, "
                               "an .npz or .safetensors with a tensor 'projection'");
}

Matrix<float> ProjectionArguments::read_matrix(const std::string& given) const {
  const ProjectionKind chosen = parse_projection(kind);
  if (chosen != ProjectionKind::matrix) {
    if (!given.empty() && Checkpoint::open(given).find(kProjectionTensor))
      fail(fmt::format("the file holds a projection, but --projection says {}", kind), given,
           "use --projection matrix, or a file without it");
    return {};
  }
  if (given.empty())
    fail("--projection matrix needs the matrix", "--given",
         "an .npz or .safetensors file with a tensor named 'projection'");
  Matrix<float> matrix = Checkpoint::open(given).read(kProjectionTensor);
  require_finite(matrix, kProjectionTensor, given);
  return matrix;
}

void require_finite(View<const float> values, const std::string& name, const std::string& file) {
  for (size_t i = 0; i < values.rows; ++i)
    for (size_t j = 0; j < values.cols; ++j)
      if (!std::isfinite(values(i, j)))
        fail(fmt::format("'{}' holds {} at [{}, {}]: expected finite numbers", name, values(i, j),
                         i, j),
             file, "mend the array: every feature would depend on it");
}

CLI::Validator positive_number() {
  const auto check = [](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && value > 0
               ? std::string()
               : "expected a positive number, found " + text;
  };
  return CLI::Validator(check, "");
}

CLI::Validator assignment(const char* shape) {
  const auto check = [shape](const std::string& text) {
    const size_t equals = text.find('=');
    return equals == std::string::npos || equals == 0
               ? fmt::format("expected {}, found {}", shape, text)
               : std::string();
  };
  return CLI::Validator(check, "");
}

void ThreadsOption::add_to(CLI::App& verb) {
  verb.add_option("-j,--threads", threads,
                  "Threads; 0 = physical cores, or what a container may use of them")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1024u));
}

CLI::Option* MemoryOption::add_to(CLI::App& verb) {
  const auto size = [](std::string& text) -> std::string {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const bool unit = text.find_first_of("0123456789.xX+-", digits) == std::string::npos;
    if (digits == 0 || digits > 18 || !unit)
      return fmt::format("expected a size such as 8GB, found {}", text.empty() ? "nothing" : text);
    const size_t zeros = std::min(text.find_first_not_of('0'), digits - 1);
    text.erase(0, zeros);  // 010 is no octal 8
    return "";
  };
  return verb
      .add_option("--memory", bytes,
                  "Rows beyond this, e.g. 8GB, go to a scratch file in TMPDIR; 0 = a quarter of "
                  "the machine's")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->transform(CLI::Validator(size, ""))  // before the other
      ->type_name("SIZE")
      ->capture_default_str();
}

void FactsOption::add_to(CLI::App& verb) {
  verb.add_option("--set", words,
                  "State a fact the file does not hold, key=value (heads, size, activation, "
                  "pooling, norm_epsilon, family, prefix, mean, std, resize, squash, crop, "
                  "interpolation; of sounds frames, mean, std)")
      ->check(assignment("key=value"))
      ->check(stated_key());
}

StatedFacts FactsOption::read() const {
  StatedFacts facts;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (!facts.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
      fail(fmt::format("'{}' is stated twice", word.substr(0, equals)), "--set", "state it once");
  }
  return facts;
}

CLI::Option* ModelOptions::add_to(CLI::App& verb, const char* description) {
  CLI::Option* option = verb.add_option("-m,--model", model, description)->type_name("MODEL");
  verb.add_option("--layer", layer,
                  "Layer whose gradient is taken: blocks.N.attn.qkv, blocks.N.attn.proj, "
                  "blocks.N.mlp.fc1 or blocks.N.mlp.fc2 of any model; -1 is the last block")
      ->capture_default_str()
      ->check(layer_name());
  verb.add_option("--precision", precision,
                  "f32, bf16, int8 (bytes in most products: about twice bf16's speed, rougher), or "
                  "auto: bf16 "
                  "where the processor multiplies it faster")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "f32", "bf16", "int8"}));
  facts.add_to(verb);
  threads.add_to(verb);
  return option;
}

void ModelOptions::add_layers(CLI::App& verb) {
  verb.add_option("--layers", layers,
                  "Several layers at once, each with blocks of its own: 'blocks.*.mlp.fc2' is that "
                  "of every block")
      ->type_name("PATTERN")
      ->excludes(verb.get_option("--layer"))
      ->check(layer_pattern());
}

BackboneOptions ModelOptions::backbone() const {
  BackboneOptions o;
  o.layer = layer;
  o.layers = layers;
  o.precision = stated_precision();
  o.stated_facts = facts.read();
  return o;
}

std::optional<Precision> ModelOptions::stated_precision() const {
  if (precision == "auto") return {};
  return parse_precision(precision);
}

std::vector<std::string> objective_list(const std::vector<std::string>& words) {
  std::vector<std::string> given;
  for (const std::string& word : words)
    for (std::string& one : split_objectives(word)) given.push_back(std::move(one));
  if (given == std::vector<std::string>{"none"}) return {};
  if (std::find(given.begin(), given.end(), "none") != given.end())
    throw CLI::ValidationError("--objectives",
                               "'none' stands beside others: give it alone, or leave it out");
  std::set<std::string> names;
  for (const std::string& text : given)
    if (const std::string name = text.substr(0, text.find(':')); !names.insert(name).second)
      throw CLI::ValidationError(
          "--objectives",
          fmt::format("'{0}' is given twice: leave one out, or give it a name of its own, {0}_b",
                      name));
  return given;
}

CLI::Validator objective_word() {
  const auto check = [](const std::string& text) {
    try {
      for (const std::string& one : split_objectives(text))
        if (one != "none")
          make_objective_of_any_kind(one, {.embedding_width = 1, .token_width = 1});
      return std::string();
    } catch (const Error& e) {
      // A list of objectives takes every word that follows it.
      std::error_code ignored;  // then it is no path
      if (std::filesystem::exists(text, ignored))
        return fmt::format(
            "'{}' is no objective but a file or folder: put the data set before the "
            "options",
            text);
      return std::string(worded(e).what());
    }
  };
  return CLI::Validator(check, "");
}

std::string objective_parameters() {
  const auto text = [](const Parameter& p) {
    return std::visit([](const auto& v) { return fmt::format("{}", v); }, p.value);
  };
  constexpr size_t kIndent = 13, kWidth = 100;
  const auto of_kind = [&](SampleKind kind, const std::string& name, std::string& out) {
    std::string line = fmt::format("  {:<{}}", name, kIndent - 2);
    const std::vector<Parameter> native = default_parameters(name, Preset::native, kind);
    for (size_t i = 0; i < native.size(); ++i) {
      std::string word = " " + native[i].name + "=" + text(native[i]), others;
      for (const Preset preset : {Preset::paper, Preset::lib, Preset::fast})
        if (const std::string other = text(default_parameters(name, preset, kind)[i]);
            other != text(native[i]))
          others += fmt::format("{}{} {}", others.empty() ? "" : ", ", to_string(preset), other);
      if (!others.empty()) word += " (" + others + ")";
      if (i + 1 < native.size()) word += ",";
      if (line.size() + word.size() > kWidth) out += line + "\n", line = std::string(kIndent, ' ');
      line += word;
    }
    out += line + "\n";
  };
  std::string out =
      "Parameters of objectives, given as simclr:negatives=64,width=96 (docs/cli.md says what they "
      "mean):\n";
  for (const std::string& name : objective_names(SampleKind::image))
    of_kind(SampleKind::image, name, out);
  out += "Of texts, where they are others:\n";
  for (const std::string& name : objective_names(SampleKind::text))
    if (name != "kl") of_kind(SampleKind::text, name, out);
  out += "Of sounds, where they are others:\n";
  for (const std::string& name : objective_names(SampleKind::sound))
    if (name != "kl") of_kind(SampleKind::sound, name, out);
  return out;
}

CLI::Validator metric_name() { return CLI::IsMember({"euclidean", "inner_product", "cosine"}); }

void VotersOption::add_to(CLI::App& verb) {
  option =
      verb.add_option("-k", k, "Neighbours that vote; without -k fewer where there are fewer rows")
          ->capture_default_str()
          ->type_name(kCount);
}

std::optional<size_t> VotersOption::asked() const {
  return option->count() > 0 ? std::optional(k) : std::nullopt;
}

bool is_terminal(int descriptor) { return isatty(descriptor) != 0; }

std::string shown(std::string_view text, bool lines) {
  std::string clean(text);
  for (char& c : clean)
    if ((static_cast<unsigned char>(c) < 0x20 && !(lines && c == '\n')) || c == 0x7F) c = '?';
  return clean;
}

void Notes::add(const std::string& note) {
  list.push_back(worded(note));
  if (shown) say("note: {}\n", app::shown(list.back()));
}

void Notes::add(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) add(note);
}

void print_json(const nlohmann::json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string human_bytes(double bytes) {
  for (const char* unit : {"B", "kB", "MB", "GB"}) {
    if (bytes < 1000)
      return fmt::format("{:.{}f} {}", bytes, bytes < 10 && *unit != 'B' ? 1 : 0, unit);
    bytes /= 1000;
  }
  return fmt::format("{:.1f} TB", bytes);
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

}  // namespace fungi::app
