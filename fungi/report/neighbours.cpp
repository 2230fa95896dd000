// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "fungi/base/error.h"
#include "fungi/feature/modality.h"
#include "fungi/report/html.h"
#include "fungi/report/shown_sample.h"

namespace fungi::report {
namespace {

constexpr std::array<const char*, 4> kKindNames{"gained", "lost", "right", "wrong"};

DecodeOptions decode_options(const Store& store) {  // a picture is shown as it was extracted
  const StoreSpec& spec = store.manifest().spec;
  if (!has_settings(spec)) return {};
  return fungi::decode_options(read_settings(spec, store.folder().string()).input);
}

// The neighbours of a query by one kind of features: pictures in a row, or texts in a list, with
// the words marked that the query (`words` are its own) lacks.
std::string strip(const Evaluation& e, const Result& r, const char* name, size_t query,
                  Album& album, const std::unordered_set<std::string>& words, size_t shown) {
  constexpr size_t kSide = 76;  // twice the size on screen, for sharp ones
  const int64_t target = e.test.labels[query], predicted = r.score.votes.predicted[query];
  std::string out =
      fmt::format("<h3>{}: <b class={}>{} {}</b></h3><ul class={}>", name,
                  predicted == target ? "up" : "down", html::escape(e.classes[size_t(predicted)]),
                  predicted == target ? "✓" : "✕", album.texts() ? "texts" : "strip");
  for (size_t i = 0; i < std::min(shown, r.neighbours.index.cols()); ++i) {
    const size_t row = r.neighbours.index(query, i);
    const int64_t label = e.train.labels[row];
    const std::string &id = e.train.ids[row], &of = e.classes[size_t(label)];
    const char* whose = label == target ? "same" : "other";
    if (album.texts())
      out += fmt::format("<li class={} title=\"{}\"><b>{}</b> {}</li>", whose, html::escape(id),
                         html::escape(of), set_off(album.text(id), words));
    else
      out += fmt::format("<li class={}>{}</li>", whose,
                         album.image(id, kSide,
                                     fmt::format("{}, {}: {} class", id, of,
                                                 label == target ? "same" : "another")));
  }
  return out + "</ul>";
}

std::vector<Query> spread(const std::vector<Query>& from, size_t count) {
  std::vector<Query> out;
  count = std::min(count, from.size());
  for (size_t i = 0; i < count; ++i) out.push_back(from[i * from.size() / count]);
  return out;
}

}  // namespace

std::string note_missing_pictures(const Store& store, const Dataset& pictures) {
  std::unordered_set<std::string_view> there;
  for (size_t i = 0; i < pictures.size(); ++i) there.insert(pictures.id(i));
  const std::vector<std::string>& ids = store.ids();
  const auto missing = [&](const std::string& id) { return !there.contains(id); };
  const auto first = std::find_if(ids.begin(), ids.end(), missing);
  if (first == ids.end()) return "";
  const size_t count = size_t(std::count_if(first, ids.end(), missing));
  const char* what = pictures.samples() == SampleKind::text ? "text" : "picture";
  // Data sets share names (coat/00019.png): those of another one would be shown for those of rows.
  if (count > ids.size() / 2)
    fail(fmt::format("the store has the sample '{}', the {}s do not, nor {} others of its {}",
                     *first, what, count - 1, ids.size()),
         store.folder().string(),
         "give the data set that the store was made from (of `split`, the folder of that split), "
         "or leave out `train_pictures` and `test_pictures`");
  return fmt::format("{}: {} of {} rows have no {} any more, e.g. '{}': their places are empty",
                     store.folder().string(), count, ids.size(), what, *first);
}

std::vector<Query> choose_queries(const Evaluation& e, size_t count) {
  std::array<std::vector<Query>, 4> by_kind;
  for (size_t i = 0; i < e.test.ids.size(); ++i) {
    const bool before = e.plain().score.votes.predicted[i] == e.test.labels[i],
               after = e.full().score.votes.predicted[i] == e.test.labels[i];
    const Kind kind =
        after ? (before ? Kind::right : Kind::gained) : (before ? Kind::lost : Kind::wrong);
    by_kind[size_t(kind)].push_back({i, kind});
  }
  std::vector<Query> chosen;
  for (const auto& [first, second] :
       {std::pair(Kind::gained, Kind::lost), std::pair(Kind::right, Kind::wrong)}) {
    const auto &a = by_kind[size_t(first)], &b = by_kind[size_t(second)];
    const size_t room = count - chosen.size(),
                 from_b = std::min(b.size(), std::max(room / 2, room - std::min(room, a.size())));
    for (const auto& part : {spread(a, room - from_b), spread(b, from_b)})
      chosen.insert(chosen.end(), part.begin(), part.end());
  }
  return chosen;
}

std::string neighbour_cards(const Evaluation& e, const Store& train, const Dataset& train_pictures,
                            const Dataset& test_pictures, const ReportOptions& o) {
  constexpr size_t kSide = 176;
  const DecodeOptions decode = decode_options(train);
  Clips clips;
  Album train_album(train_pictures, decode, clips), test_album(test_pictures, decode, clips);
  const std::string head = fmt::format(
      "<p class=note>✓ and green: a neighbour of the query's class; ✕ and red: of another. Nearest "
      "first; beside the name, what the neighbours vote for. {}Half of the queries are gained by "
      "the gradients and half are lost, as far as there are any.</p><p class=filter>",
      train_album.texts() ? "Words are marked that the query does not have. " : "");
  std::string out;
  for (const char* show : {"all", "gained", "lost"})
    out += fmt::format("<button type=button data-show={0} aria-pressed={1}>{0}</button> ", show,
                       std::string_view(show) == "all" ? "true" : "false");
  out += "</p><div class=cards>";
  for (const Query& q : choose_queries(e, o.queries)) {
    const std::string &name = e.classes[size_t(e.test.labels[q.row])], &id = e.test.ids[q.row];
    const std::string text = test_album.texts() ? test_album.text(id) : "";
    const auto words = words_of(text);
    out += fmt::format(
        "<div class=\"card{}\" data-kind={}><div class=query>{}<strong>{}</strong>{}</div><div>",
        test_album.texts() ? " text" : "", kKindNames[size_t(q.kind)],
        test_album.texts() ? fmt::format("<p>{}</p>", set_off(text, words))
                           : test_album.image(id, kSide, "query " + id),
        html::escape(name), html::escape(id));
    out += strip(e, e.plain(), "embedding", q.row, train_album, words, o.shown_neighbours) +
           strip(e, e.full(), "with gradients", q.row, train_album, words, o.shown_neighbours);
    out += "</div></div>";
  }
  return clips.note() + head + out + "</div>" + clips.html();
}

}  // namespace fungi::report
