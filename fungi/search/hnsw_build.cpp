// SPDX-License-Identifier: Apache-2.0
// Builds the graph on all threads, the same whatever their number. Rows go in by batches of a fixed
// size. First each row of a batch finds its neighbours, among the rows of earlier batches by a walk
// in their graph, which nobody changes meanwhile, and among the rows of its own batch before it by
// looking at all of them; so it sees what it would see if rows went in one by one. Then every row
// that was chosen takes the links back, each list by one thread in the order of the rows.
#include <cmath>
#include <limits>
#include <span>

#include "fungi/base/random.h"
#include "fungi/kernel/kernel.h"
#include "fungi/search/hnsw_graph.h"

namespace fungi::search {
namespace {

// Part of what the graph is: another size makes another graph. Comparing a row with half a batch
// costs a few percent of its walk.
constexpr size_t kBatch = 256;

class Builder {
 public:
  Builder(View<const float> rows, View<const double> norms, const IndexOptions& options)
      : rows_(rows),
        most_(options.links),
        effort_(std::max(options.build_effort, options.links)),
        metric_(options.metric),
        dot_(kernel::f32_kernel().dot),
        terms_(rows.rows),
        levels_(rows.rows),
        distances_(rows.rows, 2 * most_),
        settled_(rows.rows, 0) {
    for (size_t i = 0; i < rows.rows; ++i) terms_[i] = graph_term(metric_, norms(i, 0));
    graph_.links = Matrix<int32_t>(rows.rows, 1 + 2 * most_);
    graph_.upper_start = Matrix<int64_t>(rows.rows, 1);
    graph_.entry = Matrix<int64_t>(2, 1);
    draw_levels(options.seed);
  }

  HnswGraph build(const IndexOptions& options, Pool& pool) {
    const size_t n = rows_.rows;
    std::vector<Walker> walkers(pool.threads());
    for (size_t first = 0; first < n; first += kBatch) {
      if (options.progress) options.progress(first, n);
      const size_t count = std::min(kBatch, n - first);
      pool.parallel_for(count, 1, [&](size_t i, size_t, unsigned worker) {
        choose_neighbours(first, first + i, walkers[worker]);
      });
      link_back(first, first + count, pool);
      for (size_t i = first; i < first + count; ++i)
        if (i == 0 || levels_[i] > top_) top_ = levels_[i], entry_ = uint32_t(i);
    }
    if (options.progress) options.progress(n, n);
    graph_.entry(0, 0) = entry_;
    graph_.entry(1, 0) = int64_t(top_);
    return std::move(graph_);
  }

 private:
  // The neighbours of one row on one level, with their distances from it. The first `settled` of
  // them have passed select() together.
  struct List {
    int32_t* count;
    int32_t* rows;
    float* distances;
    uint16_t* settled;
    size_t room;
  };

  struct Candidate {
    Near near;
    bool settled = false;
    friend bool operator<(const Candidate& a, const Candidate& b) { return a.near < b.near; }
  };

  struct BackLink {
    size_t list;
    Near source;
  };

  // From a row to others.
  struct Distance {
    float operator()(uint32_t other) const { return builder.distance(row, other); }
    void prefetch(uint32_t other) const {
      search::prefetch(builder.rows_.row(other), builder.rows_.cols);
    }
    const Builder& builder;
    uint32_t row;
  };

  // What overflows f32 is far away, and comparable.
  float distance(uint32_t x, uint32_t y) const {
    constexpr float kFarthest = std::numeric_limits<float>::max();
    const float distance =
        graph_distance(metric_, dot_(rows_.cols, rows_.row(x), rows_.row(y)), terms_[x], terms_[y]);
    return distance < kFarthest ? distance : kFarthest;
  }

  // Each level holds one row in `links` of the level below; a row's level depends on its number
  // alone.
  void draw_levels(uint64_t seed) {
    const RandomStream random(seed, "hnsw levels");
    size_t lines = 0;
    for (size_t i = 0; i < rows_.rows; ++i) {
      levels_[i] = uint8_t(-std::log1p(-random.uniform(i)) / std::log(double(most_)));
      graph_.upper_start(i, 0) = levels_[i] ? int64_t(lines) : -1;
      lines += levels_[i];
    }
    graph_.upper = Matrix<int32_t>(lines, 2 + most_);
    upper_distances_ = Matrix<float>(lines, most_);
    upper_settled_.assign(lines, 0);
    for (size_t i = 0; i < rows_.rows; ++i)
      for (size_t level = 1; level <= levels_[i]; ++level)
        graph_.upper(number_of(i, level) - rows_.rows, 0) = int32_t(i);
  }

  // Lists by one number: those of the lowest level, then the lines of `upper`.
  size_t number_of(size_t row, size_t level) const {
    return level == 0 ? row : rows_.rows + size_t(graph_.upper_start(row, 0)) + level - 1;
  }
  List list(size_t number) {
    if (number < rows_.rows) {
      int32_t* line = graph_.links.row(number);
      return {line, line + 1, distances_.row(number), &settled_[number], 2 * most_};
    }
    const size_t upper = number - rows_.rows;
    int32_t* line = graph_.upper.row(upper) + 1;
    return {line, line + 1, upper_distances_.row(upper), &upper_settled_[upper], most_};
  }

  // Fills the lists of a new row, which nobody reads yet.
  void choose_neighbours(size_t batch, size_t row, Walker& walker) {
    const Distance distance{*this, uint32_t(row)};
    std::vector<Near> mates;
    for (size_t i = batch; i < row; ++i) mates.push_back({distance(uint32_t(i)), uint32_t(i)});
    const auto links_of = [&](size_t level) {
      return [this, level](uint32_t at, auto visit) {
        const List links = list(number_of(at, level));
        for (int32_t l = 0; l < *links.count; ++l) visit(uint32_t(links.rows[l]));
      };
    };
    const size_t own = levels_[row];
    Near at{};
    if (batch > 0) {
      at = {distance(entry_), entry_};
      for (size_t level = top_; level > own; --level)
        at = walker.descend(at, links_of(level), distance);
    }
    std::vector<Candidate> candidates;
    for (size_t level = own + 1; level-- > 0;) {
      candidates.clear();
      if (batch > 0 && level <= top_)
        for (const Near& near : walker.walk(at, effort_, rows_.rows, links_of(level), distance)) {
          candidates.push_back({near});
          at = std::min(at, near);
        }
      for (const Near& mate : mates)
        if (levels_[mate.row()] >= level) candidates.push_back({mate});
      std::sort(candidates.begin(), candidates.end());
      if (candidates.size() > effort_) candidates.resize(effort_);
      select(candidates, most_, list(number_of(row, level)));
    }
  }

  // Keeps, nearest first, those that are nearer to the owner of the list than to any one kept
  // before: links go into all directions. What two settled ones are to each other is known.
  void select(std::span<const Candidate> candidates, size_t most, const List& to) {
    std::vector<Candidate> kept;
    for (const Candidate& c : candidates) {
      if (kept.size() == most) break;
      const bool fits = std::none_of(kept.begin(), kept.end(), [&](const Candidate& k) {
        return !(k.settled && c.settled) &&
               distance(c.near.row(), k.near.row()) < c.near.distance();
      });
      if (fits) kept.push_back(c);
    }
    for (size_t l = 0; l < kept.size(); ++l)
      to.rows[l] = int32_t(kept[l].near.row()), to.distances[l] = kept[l].near.distance();
    std::fill(to.rows + kept.size(), to.rows + to.room, 0);
    *to.count = int32_t(kept.size());
    *to.settled = uint16_t(kept.size());
  }

  void link_back(size_t begin, size_t end, Pool& pool) {
    std::vector<BackLink> back;
    for (size_t row = begin; row < end; ++row)
      for (size_t level = 0; level <= levels_[row]; ++level) {
        const List links = list(number_of(row, level));
        for (int32_t l = 0; l < *links.count; ++l)
          back.push_back(
              {number_of(size_t(links.rows[l]), level), {links.distances[l], uint32_t(row)}});
      }
    std::stable_sort(back.begin(), back.end(),
                     [](const BackLink& a, const BackLink& b) { return a.list < b.list; });
    std::vector<std::span<const BackLink>> groups;  // of one list each
    for (size_t first = 0, last; first < back.size(); first = last) {
      for (last = first; last < back.size() && back[last].list == back[first].list;) ++last;
      groups.emplace_back(&back[first], last - first);
    }
    pool.parallel_for(groups.size(), 8, [&](size_t first, size_t last, unsigned) {
      for (size_t g = first; g < last; ++g) add(groups[g]);
    });
  }

  void add(std::span<const BackLink> links) {
    const List to = list(links[0].list);
    const size_t count = size_t(*to.count);
    if (count + links.size() <= to.room) {
      for (size_t l = 0; l < links.size(); ++l) {
        to.rows[count + l] = int32_t(links[l].source.row());
        to.distances[count + l] = links[l].source.distance();
      }
      *to.count += int32_t(links.size());
      return;
    }
    std::vector<Candidate> all;
    for (size_t l = 0; l < count; ++l)
      all.push_back({{to.distances[l], uint32_t(to.rows[l])}, l < *to.settled});
    for (const BackLink& link : links) all.push_back({link.source});
    std::sort(all.begin(), all.end());
    select(all, to.room, to);
  }

  const View<const float> rows_;
  const size_t most_, effort_;
  const Metric metric_;
  Dot* const dot_;
  std::vector<float> terms_;
  std::vector<uint8_t> levels_;
  HnswGraph graph_;
  Matrix<float> distances_, upper_distances_;  // of the links
  std::vector<uint16_t> settled_, upper_settled_;
  uint32_t entry_ = 0;
  size_t top_ = 0;  // the level of the entry
};

}  // namespace

HnswGraph build_hnsw_graph(View<const float> rows, View<const double> norms,
                           const IndexOptions& options, Pool& pool) {
  return Builder(rows, norms, options).build(options, pool);
}

}  // namespace fungi::search
