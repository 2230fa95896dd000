// SPDX-License-Identifier: Apache-2.0
// fungi prompts TRAIN TEST: requests to a language model with the nearest training texts as
// examples; with --endpoint they are asked, with --score replies are counted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "app/text_columns.h"
#include "app/words.h"
#include "fungi/prompt/ask.h"
#include "fungi/prompt/score.h"
#include "fungi/retrieve/outside.h"
#include "fungi/store/text.h"

namespace fungi::app {
namespace {

using store::Json;

struct Arguments {
  std::string train, test, train_data, test_data, train_split, test_split;
  std::string nearest = "first", metric = "euclidean";
  std::string layout, label_names, out = "prompts.jsonl", score, baseline;
  std::string endpoint, replies = "replies.jsonl";
  const CLI::Option* k_option = nullptr;
  size_t k = 20;
  double timeout = HttpOptions{}.timeout;
  TextColumnsArguments columns;
  PromptOptions prompts;
  AskOptions ask;
  KeyOptions key;
  MemoryOption memory;
  ThreadsOption threads;
  bool json = false;
};

// What is asked, and how; before anything is computed.
struct Server {
  Endpoint endpoint;
  ApiKey key;
  OpenSession sessions;
};

std::optional<Server> server_of(const Arguments& a) {
  if (a.endpoint.empty()) return {};
  const Endpoint endpoint = parse_endpoint(a.endpoint);
  const ApiKey key = read_key(endpoint, a.key);
  return Server{endpoint, key, http_sessions(endpoint, key, {.timeout = a.timeout})};
}

std::unique_ptr<Dataset> open_texts(const std::string& data, const std::string& split,
                                    const Arguments& a) {
  DatasetOptions options{.samples = SampleKind::text, .split = split};
  a.columns.apply(options);
  return open_dataset(data, options);
}

Prompts make_prompts(const Store& train, const Store& test, const Arguments& a, Notes& notes) {
  PromptOptions options = a.prompts;
  if (a.k_option->count() > 0) options.k = a.k;
  options.metric = parse_metric(a.metric);
  options.nearest_last = a.nearest == "last";
  options.rows.memory_limit = a.memory.limit();
  if (!a.layout.empty()) options.layout = PromptTemplate::read(a.layout);
  const LabelNames names = label_names(train, a.label_names);
  Pool pool(a.threads.count());
  Prompts prompts(train, test, {open_texts(a.train_data, a.train_split, a),
                                open_texts(a.test_data, a.test_split, a)}, names,
                  options, pool);
  notes.add(prompts.notes());
  return prompts;
}

int ask_server(const Prompts& prompts, const Server& server, const Arguments& a, Notes& notes,
               Json& out) {
  ReplyFile file(a.replies);
  AskOptions options = a.ask;
  const std::atomic<bool>& stop = stop_on_interrupt();
  options.stop = &stop;
  AskResult result;
  {
    Progress progress("ask", a.json, &stop);
    progress.turn_to("ask", "requests");
    options.progress = [&](size_t done, size_t total, size_t failed) {
      progress.update(done, total, failed);
    };
    options.note = [&](const std::string& note) { notes.add(note); };
    result = ask(prompts, file, server.sessions, server.key, options);
  }
  out["replies"] = store::to_json_string(a.replies);
  out["answered"] = result.earlier + result.answered;
  out["answered_now"] = result.answered;
  out["failed"] = result.failed;
  out["left"] = result.left;
  out["troubles"] = result.first_troubles;
  if (!a.json) {
    for (const std::string& trouble : result.first_troubles) say("failed: {}\n", shown(trouble));
    fmt::print("{}: {} of {} requests answered, {} of them now{}{}\n", shown(a.replies),
               result.earlier + result.answered, result.requests, result.answered,
               result.failed ? fmt::format(", {} failed", result.failed) : "",
               result.left ? fmt::format(", {} still to come", result.left) : "");
    if (result.left) say("interrupted; repeat the command to go on\n");
  }
  if (result.left) return kInterrupted;
  if (result.failed) return result.earlier + result.answered ? kPartial : kError;
  return kOk;
}

bool same_file(const std::string& a, const std::string& b) {
  return std::filesystem::weakly_canonical(a) == std::filesystem::weakly_canonical(b);
}

int write(const Arguments& a) {
  const std::optional<Server> server = server_of(a);
  const Store train = Store::open(a.train), test = Store::open(a.test);
  for (const Store* store : {&train, &test}) {
    require_outside(*store, a.out);
    if (server) require_outside(*store, a.replies);
  }
  if (server && same_file(a.out, a.replies))
    fail("requests and replies would be the same file", a.out, "name another with --replies");
  Notes notes{.shown = !a.json};
  const Prompts prompts = make_prompts(train, test, a, notes);
  const uintmax_t bytes = write_batch(prompts, a.out);
  Json out{{"file", store::to_json_string(a.out)},
           {"requests", prompts.size()},
           {"examples", prompts.examples()},
           {"random", a.prompts.random},
           {"model", a.prompts.model},
           {"bytes", bytes}};
  if (!a.json)
    fmt::print("{}: {} requests of {} {} examples ({})\n", shown(a.out), prompts.size(),
               prompts.examples(), a.prompts.random ? "random" : "nearest",
               human_bytes(double(bytes)));
  const int status = server ? ask_server(prompts, *server, a, notes, out) : int(kOk);
  out["notes"] = notes.list;
  if (a.json) fmt::print("{}\n", store::dump(out, 2));
  return status;
}

Json to_json(const PromptCounts& c) {
  return {{"rows", c.rows},
          {"right", c.right},
          {"no_label", c.no_label},
          {"failed", c.failed},
          {"missing", c.missing}};
}

Json to_json(const std::string& file, const PromptScore& score) {
  Json out{{"replies", store::to_json_string(file)},
           {"accuracy", score.accuracy},
           {"standard_error", score.standard_error}};
  out.update(to_json(score.all));
  out["classes"] = Json::array();
  for (const PromptScore::OfClass& one : score.classes) {
    Json entry{{"label", one.label}, {"class", store::to_json_string(one.name)}};
    entry.update(to_json(one.counts));
    out["classes"].push_back(std::move(entry));
  }
  out["notes"] = Json::array();
  for (const std::string& note : score.notes) out["notes"].push_back(worded(note));
  return out;
}

std::vector<std::string> table_row(const std::string& name, double accuracy, const PromptCounts& c,
                                   std::vector<std::string> more) {
  std::vector<std::string> row{name, percent(accuracy)};
  row.insert(row.end(), more.begin(), more.end());
  for (const size_t count : {c.right, c.rows, c.no_label, c.failed, c.missing})
    row.push_back(std::to_string(count));
  return row;
}

double share(const PromptCounts& c) { return c.rows ? double(c.right) / double(c.rows) : 0; }

// The classes of both files side by side: they are those of the same rows.
void print_classes(const std::vector<std::pair<std::string, PromptScore>>& scores) {
  std::vector<std::string> head{"class", "right %"};
  if (scores.size() > 1) head.push_back("baseline %");
  head.insert(head.end(), {"right", "rows", "no label", "failed", "missing"});
  std::vector<std::vector<std::string>> table;
  for (size_t c = 0; c < scores[0].second.classes.size(); ++c) {
    const PromptScore::OfClass& one = scores[0].second.classes[c];
    std::vector<std::string> more;
    if (scores.size() > 1) more.push_back(percent(share(scores[1].second.classes[c].counts)));
    table.push_back(table_row(one.name, share(one.counts), one.counts, more));
  }
  fmt::print("\n");
  print_table(head, table);
}

int score(const Arguments& a) {
  const Store train = Store::open(a.train), test = Store::open(a.test);
  const LabelNames names = label_names(train, a.label_names);
  std::vector<std::pair<std::string, PromptScore>> scores;
  for (const std::string& file : {a.score, a.baseline})
    if (!file.empty())
      scores.emplace_back(file, score_replies(train, test, names, file, a.prompts.limit));
  if (a.json) {
    Json list = Json::array();
    for (const auto& [file, one] : scores) list.push_back(to_json(file, one));
    fmt::print("{}\n", store::dump(list, 2));
    return kOk;
  }
  std::vector<std::vector<std::string>> table;
  for (const auto& [file, one] : scores) {
    for (const std::string& note : one.notes) say("note: {}\n", shown(worded(note)));
    for (const PromptScore::Stray& stray : one.first_strays)
      say("note: {}: the reply to {} is no label: {}\n", shown(file), shown(stray.id),
          shown(stray.reply.substr(0, 60)));
    table.push_back(table_row(file, one.accuracy, one.all, {percent(one.standard_error)}));
  }
  print_table({"replies", "right %", "± %", "right", "rows", "no label", "failed", "missing"},
              table);
  fmt::print("a row without an answer counts as an error; ± is the binomial standard error\n");
  print_classes(scores);
  return kOk;
}

}  // namespace

Verb add_prompts(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "prompts",
      "Requests to a language model, with the nearest training texts as examples; asks and scores");
  auto a = std::make_shared<Arguments>();
  self->add_option("train", a->train, "Store of texts with labels")->required();
  self->add_option("test", a->test, "Store of texts to label, extracted with --like TRAIN")
      ->required();
  // Of all that makes requests; --score reads what came of them.
  std::vector<CLI::Option*> making;
  const auto add = [&](CLI::Option* option) { return making.emplace_back(option); };
  auto* train_data = add(self->add_option("--train-data", a->train_data,
                                          "The data set that TRAIN was extracted from"));
  auto* test_data = add(self->add_option("--test-data", a->test_data, "That of TEST"));
  add(self->add_option("--split", a->train_split,
                       "Split of the data set of TRAIN, where it was extracted with one"))
      ->needs(train_data);
  add(self->add_option("--test-split", a->test_split, "Split of that of TEST"))->needs(test_data);
  a->columns.add_to(*self);
  a->k_option = add(self->add_option("-k", a->k, "Examples; without -k fewer where there are fewer")
                        ->capture_default_str()
                        ->type_name(kCount));
  auto* features = add(self->add_option("--features", a->prompts.features,
                                        "Blocks joined with +, e.g. embedding+kl; default: all"));
  auto* metric = add(self->add_option("--metric", a->metric, "euclidean, inner_product or cosine")
                         ->capture_default_str()
                         ->check(metric_name()));
  auto* pca = add(self->add_option("--pca", a->prompts.rows.pca,
                                   "Shrink to so many columns where the rows allow it; 0 = never")
                      ->capture_default_str());
  auto* memory = add(a->memory.add_to(*self));
  auto* nearest = add(self->add_option("--nearest", a->nearest, "Where the nearest example stands")
                          ->capture_default_str()
                          ->check(CLI::IsMember({"first", "last"})));
  auto* random = add(self->add_flag("--random", a->prompts.random,
                                    "Any training texts instead of the nearest: a baseline"));
  for (CLI::Option* other : {features, metric, pca, memory, nearest}) random->excludes(other);
  add(self->add_option("--seed", a->prompts.seed, "Seed of --random"))
      ->capture_default_str()
      ->needs(random);
  add(self->add_option("--template", a->layout, "A file with the words of a prompt"));
  add(self->add_option("-o,--output", a->out, "The requests, in the shape of OpenAI's batch files"))
      ->capture_default_str();
  auto* model = add(self->add_option("--model", a->prompts.model,
                                     "The language model, as its server calls it"))
                    ->capture_default_str();
  auto* endpoint = add(self->add_option("--endpoint", a->endpoint,
                                        "Ask the server there, e.g. http://localhost:8080/v1"))
                       ->needs(model);
  add(self->add_option("--replies", a->replies, "The replies; a repeated command goes on there"))
      ->capture_default_str()
      ->needs(endpoint);
  add(self->add_option("--parallel", a->ask.parallel, "Requests on their way at once"))
      ->capture_default_str()
      ->type_name(kCount)
      ->needs(endpoint);
  add(self->add_option("--tries", a->ask.tries, "Of each request, with growing waits between them"))
      ->capture_default_str()
      ->type_name(kCount)
      ->needs(endpoint);
  add(self->add_option("--timeout", a->timeout, "Seconds for a request and its whole reply"))
      ->capture_default_str()
      ->check(positive_number())
      ->needs(endpoint);
  add(self->add_option("--key-variable", a->key.variable,
                       "Environment variable that holds the key, or none; default: OPENAI_API_KEY "
                       "if it is set"))
      ->needs(endpoint);
  add(self->add_flag("--key-over-http", a->key.over_http,
                     "Send the key to another machine without encryption"))
      ->needs(endpoint);
  self->add_option("--label-names", a->label_names,
                   "A file with a line label<TAB>name for each label");
  self->add_option("--limit", a->prompts.limit, "The first so many test texts; 0 = all")
      ->capture_default_str();
  auto* score_option =
      self->add_option("--score", a->score, "Count how many replies of this file are right");
  self->add_option("--baseline", a->baseline, "Replies to requests of --random, to stand beside it")
      ->needs(score_option);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  self->final_callback([=] {
    const bool scores = !score_option->empty();
    for (const CLI::Option* option : making)
      if (scores && option->count() > 0)
        throw CLI::ValidationError(
            "--score",
            fmt::format("{} is about making requests: leave it out", option->get_name()));
    for (const CLI::Option* option : {train_data, test_data})
      if (!scores && option->empty())
        throw CLI::ValidationError(
            option->get_name(),
            "the stores hold no texts: name the data set, or score replies with --score");
  });
  return [a, score_option] { return score_option->empty() ? write(*a) : score(*a); };
}

}  // namespace fungi::app
