// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "fungi/base/error.h"
#include "fungi/feature/modality.h"
#include "fungi/input/shown.h"
#include "fungi/report/html.h"
#include "fungi/report/thumbnail.h"

namespace fungi::report {
namespace {

constexpr std::array<const char*, 4> kKindNames{"gained", "lost", "right", "wrong"};

// The sounds that the page carries, each once, in the order in which they are shown.
class Clips {
 public:
  // The name that a button plays it by; empty: the sample is no sound, or there is no room for it.
  std::string add(const Sample& sample) {
    const std::vector<uint8_t> clip = clip_of(sample, kLongest);
    if (clip.empty()) return "";
    if (bytes_ + clip.size() > kMost) return ++left_out_, "";
    bytes_ += clip.size();
    const std::string name = fmt::format("clip{}", count_++);
    html_ += fmt::format("<audio id={} preload=none src=\"data:audio/wav;base64,{}\"></audio>", name,
                         html::base64(clip));
    return name;
  }
  std::string note() const {
    if (count_ + left_out_ == 0) return "";
    return fmt::format(
        "<p class=note>Pictures are spectrograms: time to the right, pitch upwards. Press one to "
        "hear its first {} seconds at most{}.</p>",
        kLongest / kSecond,
        left_out_ ? fmt::format("; {} are silent, since the page carries no more than {} MB of "
                                "sounds",
                                left_out_, kMost >> 20)
                  : "");
  }
  const std::string& html() const { return html_; }

 private:
  static constexpr size_t kSecond = 32000;  // bytes of 16 bits at 16 kHz
  static constexpr size_t kLongest = 5 * kSecond + 44, kMost = size_t{12} << 20;
  size_t bytes_ = 0, count_ = 0, left_out_ = 0;
  std::string html_;
};

// Pictures of a data set by the ids of a store.
class Album {
 public:
  Album(const Dataset& data, DecodeOptions decode, Clips& clips)
      : data_(data), decode_(decode), clips_(clips) {
    for (size_t i = 0; i < data.size(); ++i) place_[data.id(i)] = i;
  }
  // A picture that has gone or been damaged since its extraction costs itself alone: its text is
  // shown.
  std::string image(const std::string& id, size_t side, const std::string& alt) {
    std::string picture, clip;
    try {
      if (const auto place = place_.find(id); place != place_.end()) {
        const Sample sample = data_.decode(place->second, data_.read(place->second), decode_);
        picture = html::base64(thumbnail(picture_of(sample, side), side));
        clip = heard_.contains(id) ? heard_[id] : heard_[id] = clips_.add(sample);
      }
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {  // too large for the memory
    }
    const std::string shown =
        fmt::format("<img alt=\"{0}\" title=\"{0}\" src=\"data:image/webp;base64,{1}\">",
                    html::escape(alt), picture);
    if (clip.empty()) return shown;
    return fmt::format("<button type=button class=play data-play={} aria-label=\"play {}\">{}"
                       "</button>",
                       clip, html::escape(alt), shown);
  }

 private:
  const Dataset& data_;
  DecodeOptions decode_;
  Clips& clips_;
  std::unordered_map<std::string, size_t> place_;
  std::unordered_map<std::string, std::string> heard_;  // names of clips by id
};

DecodeOptions decode_options(const Store& store) {  // a picture is shown as it was extracted
  const StoreSpec& spec = store.manifest().spec;
  if (!has_settings(spec)) return {};
  return fungi::decode_options(read_settings(spec, store.folder().string()).input);
}

std::string strip(const Evaluation& e, const Result& r, const char* name, size_t query,
                  Album& album, size_t shown) {
  constexpr size_t kSide = 76;  // twice the size on screen, for sharp ones
  const int64_t target = e.test.labels[query], predicted = r.score.votes.predicted[query];
  std::string out =
      fmt::format("<h3>{}: <b class={}>{} {}</b></h3><ul class=strip>", name,
                  predicted == target ? "up" : "down", html::escape(e.classes[size_t(predicted)]),
                  predicted == target ? "✓" : "✕");
  for (size_t i = 0; i < std::min(shown, r.neighbours.index.cols()); ++i) {
    const size_t row = r.neighbours.index(query, i);
    const int64_t label = e.train.labels[row];
    out += fmt::format(
        "<li class={}>{}</li>", label == target ? "same" : "other",
        album.image(e.train.ids[row], kSide,
                    fmt::format("{}, {}: {} class", e.train.ids[row], e.classes[size_t(label)],
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
  // Data sets share names (coat/00019.png): those of another one would be shown for those of rows.
  if (count > ids.size() / 2)
    fail(fmt::format("the store has the sample '{}', the pictures do not, nor {} others of its {}",
                     *first, count - 1, ids.size()),
         store.folder().string(),
         "give the data set that the store was made from (of `split`, the folder of that split), "
         "or leave out `train_pictures` and `test_pictures`");
  return fmt::format(
      "{}: {} of {} rows have no picture any more, e.g. '{}': their places are empty",
      store.folder().string(), count, ids.size(), *first);
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
  const std::string head =
      "<p class=note>✓ and green: a neighbour of the query's class; ✕ and red: of another. Nearest "
      "first; beside the name, what the neighbours vote for. Half of the queries are gained by the "
      "gradients and half are lost, as far as there are any.</p><p class=filter>";
  std::string out;
  for (const char* show : {"all", "gained", "lost"})
    out += fmt::format("<button type=button data-show={0} aria-pressed={1}>{0}</button> ", show,
                       std::string_view(show) == "all" ? "true" : "false");
  out += "</p><div class=cards>";
  for (const Query& q : choose_queries(e, o.queries)) {
    const std::string& name = e.classes[size_t(e.test.labels[q.row])];
    out += fmt::format(
        "<div class=card data-kind={}><div class=query>{}<strong>{}</strong>{}</div><div>",
        kKindNames[size_t(q.kind)],
        test_album.image(e.test.ids[q.row], kSide, "query " + e.test.ids[q.row]),
        html::escape(name), html::escape(e.test.ids[q.row]));
    out += strip(e, e.plain(), "embedding", q.row, train_album, o.shown_neighbours) +
           strip(e, e.full(), "with gradients", q.row, train_album, o.shown_neighbours);
    out += "</div></div>";
  }
  return clips.note() + head + out + "</div>" + clips.html();
}

}  // namespace fungi::report
