// SPDX-License-Identifier: Apache-2.0
// fungi reproduce [TABLE]: the paper's tables, what they need, and our numbers beside them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "app/reproduce_rows.h"
#include "app/words.h"
#include "fungi/base/atomic_file.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/extractor.h"
#include "fungi/report/compared_page.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string table, preset = "paper", precision = "auto";
  std::vector<std::string> use;  // key=file
  FindOptions find;
  RunOptions run{.work = "reproduce"};
  std::string page;
  ThreadsOption threads;
  bool json = false, plan = false;
};

constexpr const char* kAll = "all";

int list_tables(bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const PaperTable& t : paper_tables()) {
    list.push_back({{"table", t.name},
                    {"title", t.title},
                    {"protocol", protocol_name(t.protocol)},
                    {"backbones", backbones_of(t)},
                    {"data", data_sets_of(t)},
                    {"numbers", cells_of(t).size()}});
    if (!json)
      fmt::print("{:<18}{}: {} numbers, {} backbones, {} data sets\n", t.name, t.title,
                 cells_of(t).size(), backbones_of(t).size(), data_sets_of(t).size());
  }
  if (json)
    print_json(list);
  else
    fmt::print(
        "fungi reproduce TABLE --data DIR --models DIR computes what is there; without the folders "
        "it says what a table needs\n");
  return kOk;
}

const PaperTable* find_table(const std::string& name) {
  for (const PaperTable& t : paper_tables())
    if (t.name == name) return &t;
  return nullptr;
}

std::string require_table(const std::string& name) {
  if (find_table(name) || name == kAll) return "";
  std::vector<std::string> names;
  for (const PaperTable& t : paper_tables()) names.push_back(t.name);
  return fmt::format("there is no table '{}': choose all, or one of {}", name,
                     fmt::join(names, ", "));
}

// Where the paper's experiments and the model as it was published part; asked of the model that was
// opened, since --use may give any file for a backbone of the paper.
std::vector<const char*> differences(const Backbone& backbone) {
  std::vector<const char*> notes;
  if (backbone.options().mha_input_as_activation)
    notes.push_back(
        "the preset paper takes the LayerNorm's output for the layer's input, as the paper did; "
        "the others its true input (docs/numerics.md)");
  if (backbone.architecture().family == "clip")
    notes.push_back(
        "the preset paper runs it with GELU, as the paper did; the others with QuickGELU, as it "
        "was trained (docs/numerics.md)");
  return notes;
}

// What tells that a file given with --use is another model; empty: nothing.
std::string other_size(const Architecture& a, const PaperBackbone& facts) {
  if (facts.patch == 0)
    return a.width == facts.width
               ? ""
               : fmt::format(" has width {}, {} has {}", a.width, facts.title, facts.width);
  if (a.width == facts.width && a.patch_h == facts.patch) return "";
  return fmt::format(" has width {} and patch {}, {} has {} and {}", a.width, a.patch_h,
                     facts.title, facts.width, facts.patch);
}

// Of segmentations, which open their model themselves.
void note_other_model(const std::filesystem::path& path, const PaperBackbone& facts,
                      const std::function<void(const std::string&)>& note) {
  const Architecture a = read_architecture(Checkpoint::open(path));
  if (const std::string other = other_size(a, facts); !other.empty())
    note(fmt::format("{} is not the paper's model: it{}", path.string(), other));
}

// Everything that is there; what goes wrong with one backbone or data set costs no other.
Results compute(const PaperTable& table, const Arguments& a, Findings& findings, Pool& pool) {
  Results results;
  const auto note_once = [&](const std::string& note) {
    if (std::find(findings.notes.begin(), findings.notes.end(), note) == findings.notes.end())
      findings.notes.push_back(note);
  };
  for (const auto& [key, path] : findings.checkpoints) {
    const PaperBackbone& facts = paper_backbone(key);
    std::optional<Backbone> backbone;
    const auto open = [&](const PaperData* data) -> const Backbone& {
      if (backbone && (!data || data->facts.empty())) return *backbone;
      backbone.emplace(open_backbone(table, facts, path, data, a.run, pool));
      if (const std::string note = other_size(backbone->architecture(), facts); !note.empty())
        note_once(fmt::format("{} is not the paper's model: it{}", path.string(), note));
      for (const std::string& note : backbone->notes())
        note_once(fmt::format("{}: {}", key, worded(note)));
      for (const char* note : differences(*backbone)) note_once(fmt::format("{}: {}", key, note));
      return *backbone;
    };
    const auto guarded = [&](const std::string& data, const std::function<RunResult()>& run) {
      try {
        results[{key, data}] = run();
      } catch (const Error& e) {
        findings.absent.push_back({"result", key + " on " + data, "", worded(e).what()});
      }
    };
    for (const auto& [data, found] : findings.data)
      guarded(data, [&] {
        const PaperData& of = paper_data(data);
        if (table.protocol != Protocol::segmentation)
          return run_pair(table, facts, open(&of), of, found, a.run, pool);
        note_other_model(path, facts, note_once);
        return run_segmentation(table, facts, path, of, found, a.run, pool);
      });
    const std::vector<PaperCell> cells = cells_of(table);
    if (std::any_of(cells.begin(), cells.end(),
                    [&](const PaperCell& c) { return c.data == kMachine && c.backbone == key; }))
      guarded(kMachine, [&] { return run_speed(table, facts, open(nullptr), a.run, pool); });
  }
  for (const auto& [pair, result] : results) {
    findings.notes.insert(findings.notes.end(), result.notes.begin(), result.notes.end());
    for (const auto& [what, reason] : result.reasons)
      findings.absent.push_back(
          {"result",
           fmt::format("{} on {}, {} {}", pair.first, pair.second, what.first, what.second), "",
           reason});
    for (const auto& [what, how] : result.waiting)
      findings.absent.push_back(
          {"replies", fmt::format("{} on {}, {}", pair.first, pair.second, what.second), "", how});
    if (pair.second == kMachine) continue;
    const PaperData& data = paper_data(pair.second);
    const bool tested = table.protocol != Protocol::clusters && table.protocol != Protocol::cka;
    if (!data.note.empty()) findings.notes.push_back(fmt::format("{}: {}", data.title, data.note));
    if (result.failed)
      findings.notes.push_back(fmt::format("{} on {}: {} samples failed (failed.jsonl)", pair.first,
                                           pair.second, result.failed));
    if (result.train != data.train || (tested && result.test != data.test))
      findings.notes.push_back(fmt::format(
          "{} on {}: not the paper's data: {} training{} rows here, {}{} there", pair.first,
          pair.second, result.train, tested ? fmt::format(" and {} test", result.test) : "",
          data.train, tested ? fmt::format(" and {}", data.test) : ""));
  }
  return results;
}

// What it would take, before anything is started.
void tell_plan(const PaperTable& table, const Arguments& a, const Findings& findings,
               const std::vector<PlannedPair>& there, const std::vector<PlannedPair>& missing,
               nlohmann::json& out) {
  const auto list = [&](const PlannedPair& pair) {
    out.push_back({{"table", table.name},
                   {"backbone", pair.backbone},
                   {"data", pair.data},
                   {"there", pair.there},
                   {"shared", pair.shared},
                   {"samples", pair.cost.samples},
                   {"forward_passes", pair.cost.passes},
                   {"hours", pair.cost.seconds / 3600}});
    if (!pair.trouble.empty()) out.back()["trouble"] = pair.trouble;
  };
  for (const PlannedPair& pair : there) {
    list(pair);
    if (!a.json)
      fmt::print("{}: {} on {}: {}{}\n", table.name, pair.backbone, pair.data,
                 pair.trouble.empty() ? pair.cost.text() : pair.trouble,
                 pair.shared ? ", the same as of a table before" : "");
  }
  for (const PlannedPair& pair : missing) list(pair);
  for (const Absent& m : findings.absent) {
    const Cost cost = cost_of(m, missing, findings);
    if (!a.json)
      fmt::print("{}: missing {} {}: {}{}\n", table.name, m.kind, m.key, m.reason,
                 cost.passes ? "; with it " + cost.text() : "");
  }
}

// What a page says first: nobody shall take its numbers for the paper's protocol where they are
// not.
std::vector<std::string> warnings(const Arguments& a, const std::vector<ComparedTable>& tables) {
  std::vector<std::string> out;
  if (a.run.limit)
    out.push_back(
        fmt::format("A rehearsal: {} samples of each split at most (--limit). These are "
                    "not the paper's data.",
                    a.run.limit));
  for (const ComparedTable& table : tables)
    for (const std::string& note : table.notes)
      if (note.find("is not the paper's model") != std::string::npos &&
          std::find(out.begin(), out.end(), note) == out.end())
        out.push_back(note);
  return out;
}

void add_notes(const PaperTable& table, const Arguments& a, Findings& findings) {
  if (a.run.limit)
    findings.notes.push_back(fmt::format(
        "a rehearsal: {} samples of each split at most; not the paper's data", a.run.limit));
  if (table.protocol == Protocol::icl)
    findings.notes.push_back(
        "a language model gives the answers: with --data and --models, 'missing' says how to ask "
        "one with 'fungi prompts', for each number");
}

int run(Arguments& a) {
  if (a.table.empty()) return list_tables(a.json);
  a.run.preset = parse_preset(a.preset);
  if (a.precision != "auto") a.run.precision = parse_precision(a.precision);
  a.run.quiet = a.json;
  for (const std::string& use : a.use) {
    const size_t equals = use.find('=');
    a.find.use[use.substr(0, equals)] = use.substr(equals + 1);
  }
  const bool all = a.table == kAll;
  if (all && a.page.empty() && !a.plan && !a.find.data.empty())
    a.page = (std::filesystem::path(a.run.work) / "reproduce.html").string();
  nlohmann::json printed = nlohmann::json::array();
  ComparedPage page{.title = "The paper beside ours"};
  Pool pool(a.threads.count());
  Planner planner(a.run, pool);
  bool went_wrong = false;
  for (const PaperTable& table : paper_tables()) {
    if (!all && table.name != a.table) continue;
    Findings findings = find_for(table, a.find);
    std::vector<PlannedPair> there, missing;
    if (a.plan) there = planner.there(table, findings);
    if (a.plan || !a.page.empty()) missing = planner.missing(table, findings);
    Results results;
    if (a.plan) {
      tell_plan(table, a, findings, there, missing, printed);
    } else {
      add_notes(table, a, findings);
      results = compute(table, a, findings, pool);
    }
    const std::vector<Row> rows = rows_of(table, results);
    if (!a.plan) {
      printed.push_back(to_json(table, rows, findings, seeds_of(table, a.run)));
      if (!a.json) print_text(table, rows, findings);
    }
    went_wrong = went_wrong ||
                 std::any_of(findings.absent.begin(), findings.absent.end(),
                             [](const Absent& m) { return m.kind == "result"; }) ||
                 std::any_of(results.begin(), results.end(),
                             [](const auto& r) { return r.second.failed > 0; });
    if (a.page.empty()) continue;
    page.tables.push_back(to_page(table, rows, findings, missing));
    page.tables.back().planned = sum_of(there).text_if_any();
    page.warnings = warnings(a, page.tables);
    page.planned = planner.total().text_if_any(), page.cost = planner.total_missing().text_if_any();
    // After each table: what is interrupted is shown.
    std::filesystem::create_directories(std::filesystem::absolute(a.page).parent_path());
    write_file_atomically(a.page, compared_page(page));
  }
  if (a.plan && !a.json) {
    fmt::print("all that is there: {}\n", planner.total().text());
    fmt::print("all that is missing: {}\n", planner.total_missing().text());
  }
  if (a.json) app::print_json(all || a.plan ? printed : printed.at(0));
  if (!a.page.empty() && !a.json) fmt::print("page: {}\n", shown(a.page));
  return went_wrong ? kPartial : kOk;
}

}  // namespace

Verb add_reproduce(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "reproduce",
      "The paper's tables beside our numbers, for the data and checkpoints that are there");
  auto a = std::make_shared<Arguments>();
  auto* table = self->add_option("table", a->table,
                                 "Name of a table, or all; without it the tables are listed")
                    ->check(CLI::Validator(require_table, ""));
  self->add_option("--data", a->find.data,
                   "Folder with one folder per data set, each with train and test");
  self->add_option("--models", a->find.models,
                   "Folder with checkpoints, as published; searched with its sub-folders");
  self->add_option("--limit", a->run.limit,
                   "A rehearsal: so many samples of each split, evenly spread; 0 = all")
      ->capture_default_str();
  self->add_flag("--plan", a->plan,
                 "Only say what it would take: samples, forward passes, hours on this machine");
  self->add_option("--page", a->page,
                   "HTML page of paper and ours; of all: reproduce.html in the folder of --work");
  self->add_option("--use", a->use, "BACKBONE=FILE: take this checkpoint for it, whatever its name")
      ->check(assignment("BACKBONE=FILE"));
  self->add_option("--work", a->run.work,
                   "Folder for the features; a repeated command goes on there")
      ->capture_default_str();
  self->add_option("--preset", a->preset, "paper: as the authors' experiments; native, lib")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "paper", "lib"}));
  self->add_option("--precision", a->precision,
                   "f32, bf16, int8 (bytes in most products: about twice bf16's speed, rougher), "
                   "or auto: bf16 "
                   "where the processor multiplies it faster")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "f32", "bf16", "int8"}));
  auto* seed =
      self->add_option("--seed", a->run.seed,
                       "Seed of heads, projection, crops and support; tables of means over "
                       "seeds take this one and the next two")
          ->capture_default_str();
  self->add_option("--seeds", a->run.seeds,
                   "Compute every table once for each seed and give mean and deviation")
      ->type_name("SEED")
      ->excludes(seed);
  a->threads.add_to(*self);
  for (const char* option : {"--data", "--models", "--use", "--work", "--preset", "--precision",
                             "--seed", "--seeds", "--limit", "--plan", "--page"})
    self->get_option(option)->needs(table);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
