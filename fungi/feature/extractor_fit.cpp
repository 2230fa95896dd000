// SPDX-License-Identifier: Apache-2.0
// What objectives need before the first sample: their state (heads, negatives, clusters), found
// from the training data, or put back. Also what was counted, which processes add up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/feature/extractor_state.h"

namespace fungi {
namespace {

// State is stored as a file each: "kl-head-weight" for the tensor "head.weight" of "kl".
std::string stored_name(const Objective& objective, std::string name) {
  std::replace(name.begin(), name.end(), '.', '-');
  return objective.name() + "-" + name;
}

// Objectives that look at the same views of the same training samples share those forward passes.
struct SupportGroup {
  size_t samples = 0, request = 0;
  std::vector<Objective*> objectives;
  std::vector<Matrix<float>> kept;  // per objective
};

std::vector<SupportGroup> support_groups(std::vector<ScheduledObjective>& objectives,
                                         ViewSchedule& schedule) {
  std::vector<SupportGroup> groups;
  for (ScheduledObjective& o : objectives) {
    const Support wanted = o.objective->support();
    if (wanted.samples == 0 || o.objective->ready()) continue;
    const size_t request = schedule.add(wanted.views);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const SupportGroup& g) {
      return g.samples == wanted.samples && g.request == request;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), {wanted.samples, request, {}, {}});
    group->objectives.push_back(o.objective.get());
  }
  return groups;
}

}  // namespace

bool Extractor::fit(const Dataset& support, const std::function<void(size_t, size_t)>& progress,
                    const std::atomic<bool>* stop) {
  State& s = *state_;
  const auto turn = s.take_turn();
  ViewSchedule schedule(s.modality);
  std::vector<SupportGroup> groups = support_groups(s.objectives, schedule);
  if (groups.empty()) return true;
  std::vector<ChunkWorker> workers;
  for (unsigned i = 0; i < s.pool.threads(); ++i)
    workers.emplace_back(s.backbone, schedule, s.options.seed);
  for (SupportGroup& group : groups) {
    const std::vector<uint32_t> order =
        choose_support(support.size(), support.size(), s.options.seed);
    const size_t wanted = std::min(group.samples, order.size()),
                 views = schedule[group.request].views;
    for (const Objective* o : group.objectives)
      group.kept.emplace_back(wanted * views,
                              o->support_width(s.backbone.architecture().embedding_width));
    // False: a file that is broken, or too much for the backbone's numbers, is no negative;
    // extraction will report it.
    const auto embedded = [&](size_t index, unsigned worker, Matrix<float>& out) {
      bool was_read = false;
      try {
        const std::vector<uint8_t> bytes = support.read(index);
        was_read = true;
        const Sample decoded = support.decode(index, bytes, s.options.decode);
        const PreparedSample sample{&decoded, support.id(index)};
        out = workers[worker].embed_request({&sample, 1}, group.request);
        return std::all_of(out.data(), out.data() + out.rows() * out.cols(),
                           [](float x) { return std::isfinite(x); });
      } catch (const Exhausted&) {
        throw;
      } catch (const Error&) {
        if (!was_read) support.require_present();
        return false;
      } catch (const std::bad_alloc&) {  // a sample too large for the memory
        return false;
      }
    };
    std::mutex counting;
    size_t done = 0, next = 0;
    if (progress)  // through the pool, which refuses what a callback must not call
      s.pool.parallel_for(1, 1, [&](size_t, size_t, unsigned) { progress(0, wanted); });
    // Each slot gets the next of the order; where that cannot be used, the one after all these.
    std::vector<size_t> place(wanted), empty(wanted);
    std::iota(empty.begin(), empty.end(), size_t{0});
    while (!empty.empty() && next < order.size()) {
      const size_t tried = std::min(empty.size(), order.size() - next);
      std::vector<uint8_t> good(tried);
      // They are read in the order of the data set: compressed archives can only be read forwards.
      std::vector<size_t> walk(tried);
      std::iota(walk.begin(), walk.end(), size_t{0});
      std::sort(walk.begin(), walk.end(),
                [&](size_t x, size_t y) { return order[next + x] < order[next + y]; });
      s.pool.parallel_for(tried, 1, [&](size_t step, size_t, unsigned worker) {
        if (stop && stop->load()) return;
        const size_t i = walk[step], slot = empty[i];
        place[slot] = next + i;
        Matrix<float> embeddings;
        if (!embedded(order[place[slot]], worker, embeddings)) return;
        for (size_t o = 0; o < group.objectives.size(); ++o)
          group.objectives[o]->reduce_support(embeddings,
                                              group.kept[o].view().slice(slot * views, views));
        good[i] = 1;
        if (!progress) return;
        const std::lock_guard lock(counting);
        progress(++done, wanted);
      });
      if (stop && stop->load()) return false;
      next += tried;
      std::vector<size_t> still(empty.begin() + std::ptrdiff_t(tried), empty.end());
      for (size_t i = 0; i < tried; ++i)
        if (!good[i]) still.push_back(empty[i]);
      empty = std::move(still);
    }
    if (empty.size() == wanted)
      fail(fmt::format("none of the {} support samples could be used", order.size()),
           group.objectives[0]->name(), "check the data set");
    std::vector<uint8_t> unused(wanted);
    for (const size_t slot : empty) unused[slot] = 1;
    std::vector<size_t> slots;  // in the order drawn
    for (size_t slot = 0; slot < wanted; ++slot)
      if (!unused[slot]) slots.push_back(slot);
    std::sort(slots.begin(), slots.end(), [&](size_t x, size_t y) { return place[x] < place[y]; });
    for (size_t o = 0; o < group.objectives.size(); ++o) {
      const Matrix<float>& kept = group.kept[o];
      if (next == wanted && empty.empty()) {  // all were good: they are in order
        group.objectives[o]->prepare(kept, views, s.pool);
        continue;
      }
      Matrix<float> ordered(slots.size() * views, kept.cols());
      for (size_t i = 0; i < slots.size(); ++i)
        std::copy_n(kept.row(slots[i] * views), views * kept.cols(), ordered.row(i * views));
      group.objectives[o]->prepare(ordered, views, s.pool);
    }
  }
  for (ChunkWorker& w : workers) s.collect_stages(w);
  return true;
}

std::vector<NamedMatrix> Extractor::state() const {
  const std::lock_guard lock(state_->telling);
  std::vector<NamedMatrix> all;
  for (const ScheduledObjective& o : state_->objectives)
    for (NamedMatrix& m : o.objective->state())
      all.push_back({stored_name(*o.objective, m.name), std::move(m.values)});
  return all;
}

std::vector<std::string> Extractor::State::restore(const std::vector<NamedMatrix>& state) {
  const std::lock_guard lock(telling);
  std::vector<std::string> names;
  std::vector<std::vector<NamedMatrix>> parts(objectives.size());
  for (const NamedMatrix& m : state) {
    // "kl-own-head-weight" is of the objective "kl-own", not of "kl".
    size_t owner = objectives.size(), longest = 0;
    for (size_t o = 0; o < objectives.size(); ++o)
      if (const std::string prefix = stored_name(*objectives[o].objective, "");
          prefix.size() > longest && m.name.starts_with(prefix))
        owner = o, longest = prefix.size();
    if (owner == objectives.size()) {
      std::vector<std::string> known;
      for (const ScheduledObjective& o : objectives)
        for (const NamedMatrix& part : o.objective->state())
          known.push_back(stored_name(*o.objective, part.name));
      fail(fmt::format("'{}' belongs to none of the objectives", m.name), "state",
           known.empty() ? "this run has no objectives with a state: leave it out"
                         : fmt::format("those of this run have: {}", fmt::join(known, ", ")));
    }
    const Objective& objective = *objectives[owner].objective;
    std::string name = m.name.substr(longest);
    for (const NamedMatrix& known : objective.state())
      if (stored_name(objective, known.name) == m.name) name = known.name;
    names.push_back(stored_name(objective, name));
    parts[owner].push_back({std::move(name), m.values.copy()});
  }
  for (size_t o = 0; o < objectives.size(); ++o)
    if (!parts[o].empty()) objectives[o].objective->restore(parts[o]);
  return names;
}

void Extractor::restore(const std::vector<NamedMatrix>& state) {
  const auto turn = state_->take_turn();
  std::vector<std::string> names = state_->restore(state);
  const std::lock_guard lock(state_->telling);
  std::move(names.begin(), names.end(), std::back_inserter(state_->stated));
}

void Extractor::require_stated(StoreWriter& writer) const {
  const std::vector<NamedMatrix> all = state();
  const std::lock_guard lock(state_->telling);
  const std::vector<std::string>& stated = state_->stated;
  for (const NamedMatrix& m : all)
    if (writer.has_state(m.name) && std::find(stated.begin(), stated.end(), m.name) != stated.end())
      writer.put_state(m.name, m.values);
}

bool Extractor::settle(StoreWriter& writer, const Dataset& support,
                       const std::function<void(size_t, size_t)>& progress,
                       const std::atomic<bool>* stop) {
  const auto turn = state_->take_turn();
  require_stated(writer);
  std::vector<NamedMatrix> stored;
  for (const std::string& name : writer.state_names()) stored.push_back({name, writer.state(name)});
  state_->restore(stored);
  if (!ready() && !fit(support, progress, stop)) return false;
  for (const NamedMatrix& m : state())
    if (!writer.has_state(m.name)) writer.put_state(m.name, m.values);
  return true;
}

std::vector<uint64_t> Extractor::counted() const {
  const std::lock_guard lock(state_->telling);
  std::vector<uint64_t> all{state_->cut, state_->resampled};
  all.insert(all.end(), state_->zeros.begin(), state_->zeros.end());
  return all;
}

void Extractor::add_counted(std::span<const uint64_t> others) {
  const std::lock_guard lock(state_->telling);
  FUNGI_ASSERT(others.size() == 2 + state_->zeros.size());
  state_->cut += others[0], state_->resampled += others[1];
  for (size_t o = 0; o < state_->zeros.size(); ++o) state_->zeros[o] += others[2 + o];
}

}  // namespace fungi
