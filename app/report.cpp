// SPDX-License-Identifier: Apache-2.0
// fungi report TRAIN TEST -o report.html: one self-contained page.
#include "fungi/report/report.h"

#include <fmt/format.h>

#include <span>

#include "app/features.h"
#include "app/text_columns.h"
#include "app/words.h"
#include "fungi/base/atomic_file.h"
#include "fungi/feature/modality.h"
#include "fungi/retrieve/outside.h"

namespace fungi::app {

Verb add_report(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string train, test, out = "report.html", reduce = "pca";
    std::string train_pictures, test_pictures, train_split, test_split;
    double hop = 0;
    ReportOptions report;
    VotersOption voters;
    SeedsOption seeds;
    MemoryOption memory;
    TextColumnsArguments columns;
    ThreadsOption threads;
  };
  self = parent.add_subcommand(
      "report", "One self-contained HTML page: what the gradients add to the embedding");
  auto a = std::make_shared<Arguments>();
  self->add_option("train", a->train, "Store with labels")->required();
  self->add_option("test", a->test, "Store extracted with --like TRAIN")->required();
  self->add_option("-o,--output", a->out, "The page")->capture_default_str();
  auto* of_train = self->add_option("--train-pictures,--train-data", a->train_pictures,
                                    "Data set of TRAIN, of any kind, to show neighbours");
  auto* of_test =
      self->add_option("--test-pictures,--test-data", a->test_pictures, "Data set of TEST")
          ->needs(of_train);
  of_train->needs(of_test);
  self->add_option("--split", a->train_split,
                   "Split of the data set of TRAIN, where it was extracted with one")
      ->needs(of_train);
  self->add_option("--test-split", a->test_split, "Split of that of TEST")->needs(of_train);
  self->add_option("--hop", a->hop, "Seconds between the windows of sounds, as they were extracted")
      ->needs(of_train);
  self->add_option("--queries", a->report.queries, "Test samples shown with their neighbours")
      ->capture_default_str()
      ->needs(of_train);
  a->columns.add_to(*self);
  a->voters.add_to(*self);
  self->add_option("--pca", a->report.pca,
                   "Shrink to so many columns where the rows allow it; 0 = never")
      ->capture_default_str();
  add_reduce(*self, a->reduce);
  a->seeds.add_to(*self);
  a->memory.add_to(*self);
  a->threads.add_to(*self);
  return [a] {
    check_seeds(a->seeds.seeds, {.stores = names_seed(a->train) || names_seed(a->test),
                                 .draws = a->reduce != "pca" && a->report.pca > 0,
                                 .hint = ", or give a random --reduce"});
    for (const uint32_t seed : a->seeds.seeds)
      a->report.draws.push_back({seed, with_seed(a->train, seed), with_seed(a->test, seed)});
    const ReportDraw shown_one =
        a->report.draws.empty() ? ReportDraw{0, a->train, a->test} : a->report.draws[0];
    const Store train = Store::open(shown_one.train), test = Store::open(shown_one.test);
    a->report.reduce = parse_reduce(a->reduce);
    for (const ReportDraw& draw : a->report.draws)
      for (const auto& path : {draw.train, draw.test}) require_outside(Store::open(path), a->out);
    for (const Store* store : {&train, &test}) require_outside(*store, a->out);
    require_labels(train);
    require_labels(test);
    const std::filesystem::path out = behind_links(a->out);
    { const AtomicFile possible(out); }  // an hour later it is too late to say that it is not
    const Voters usual = voters(a->voters.asked(), train.rows());
    if (!usual.note.empty()) say("note: {}\n", worded(usual.note));
    a->report.k = usual.k;
    a->report.memory_limit = a->memory.limit();
    std::unique_ptr<Dataset> train_pictures, test_pictures;
    const auto opened = [&](const Store& store, const std::string& path,
                            const std::string& split) {
      const StoreSpec& spec = store.manifest().spec;
      DatasetOptions data;
      if (has_settings(spec)) data = data_options(read_settings(spec, a->train).input);
      data.hop = a->hop;
      data.split = split;
      a->columns.apply(data);
      return open_dataset(path, data);
    };
    if (!a->train_pictures.empty()) {
      train_pictures = opened(train, a->train_pictures, a->train_split);
      test_pictures = opened(test, a->test_pictures, a->test_split);
    }
    Pool pool(a->threads.count());
    for (const std::string& note :
         report_notes(train, test, train_pictures.get(), test_pictures.get()))
      say("note: {}\n", shown(worded(note)));
    const std::string page =
        make_report(train, test, train_pictures.get(), test_pictures.get(), a->report, pool);
    AtomicFile file(out);
    file.write(std::as_bytes(std::span(page)));
    file.finish();
    fmt::print("{} ({})\n", shown(a->out), human_bytes(double(page.size())));
    return int(kOk);
  };
}

}  // namespace fungi::app
