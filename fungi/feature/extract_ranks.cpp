// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/extract_ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "fungi/comm/bytes.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/extract_run.h"
#include "fungi/feature/rank_messages.h"
#include "fungi/feature/work_share.h"

namespace fungi {
namespace {

constexpr Comm::Tag kDone = 0, kGive = 1, kHalt = 2;
constexpr auto kShortest = std::chrono::milliseconds(1), kLongest = std::chrono::milliseconds(20);

// Rank 0: its own computing on the calling thread, the others' requests on another.
class FirstRank {
 public:
  FirstRank(Extractor& extractor, const Dataset& dataset,
            const std::vector<StoreSample>& samples, StoreWriter& writer,
            std::span<const StoreWork> works, const ExtractRun& run, const RankOptions& options,
            Comm& comm)
      : extractor_(extractor),
        dataset_(dataset),
        samples_(samples),
        writer_(writer),
        works_(works),
        run_(run),
        options_(options),
        comm_(comm),
        share_(works, samples, comm.size()) {
    for (const StoreWork& work : works_) progress_.total += work.samples.size();
  }

  void work() {
    tell(0, 0);
    std::thread service([this] { serve(); });
    try {
      compute();
    } catch (...) {
      keep(std::current_exception());
    }
    service.join();
    if (broken_) std::rethrow_exception(broken_);  // the disk refuses: nothing more can be saved
  }

  // After finish(): what ended the work of all.
  void rethrow() const {
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!broken_) broken_ = std::move(error);
    halt_ = true;
  }

  std::optional<size_t> next(size_t rank) {
    if (halt_ || (run_.stop && run_.stop->load())) return {};
    return share_.next(rank);
  }

  void compute() {
    for (;;) {
      std::optional<size_t> w;
      {
        const std::lock_guard lock(mutex_);
        w = next(0);
      }
      if (!w) return;
      const StoreWork& work = works_[*w];
      const auto within = [&](size_t done, size_t failed) { tell(done, failed); };
      const StoreRows rows = extractor_.extract(dataset_, work.samples, within, &halt_);
      const std::lock_guard lock(mutex_);
      saved(work, writer_.put(work, rows), rows.undone.size());
    }
  }

  void saved(const StoreWork& work, const std::vector<StoreFailure>& failures, size_t undone) {
    progress_.saved += work.samples.size() - undone;
    progress_.failed += failures.size();
    for (const StoreFailure& f : failures) {
      const std::string& id = samples_[work.samples[f.position]].id;
      if (run_.failure) run_.failure(id, f);
      if (!run_.strict || failed_) continue;
      failed_ = std::make_exception_ptr(strict_error(f, id));
      halt_ = true;
    }
    if (run_.progress) run_.progress({progress_.saved, progress_.total, progress_.failed,
                                      progress_.saved});
  }

  void tell(size_t done, size_t failed) {
    const std::lock_guard lock(mutex_);
    if (run_.progress)
      run_.progress({progress_.saved + done, progress_.total, progress_.failed + failed,
                     progress_.saved});
  }

  void serve() {
    size_t working = comm_.size() - 1;
    bool told = false;
    auto pause = kShortest;
    try {
      while (working > 0) {
        if (run_.stop && run_.stop->load()) halt_ = true;
        if (halt_ && !told) {
          for (size_t r = 1; r < comm_.size(); ++r) comm_.send(r, kHalt, "");
          told = true;
        }
        const std::optional<Comm::Message> message = comm_.poll(kDone);
        if (!message) {
          std::this_thread::sleep_for(pause);
          pause = std::min(pause * 2, kLongest);
          continue;
        }
        pause = kShortest;
        working -= answer(*message);
      }
    } catch (...) {
      if (comm_.failure()) {  // another rank's: what is here can be saved
        const std::lock_guard lock(mutex_);
        if (!failed_) failed_ = std::current_exception();
        halt_ = true;
      } else {
        keep(std::current_exception());
      }
    }
  }

  // Takes what a rank has done and gives it more; true: there is no more.
  bool answer(const Comm::Message& message) {
    const std::lock_guard lock(mutex_);
    if (broken_) return true;
    Done done = read_done(message.bytes);
    if (done.kind != Done::Kind::nothing) {
      const StoreWork& work = works_[done.work];
      if (done.kind == Done::Kind::written)
        saved(work, writer_.record(work, std::move(done.rows.failures)), 0);
      else
        saved(work, writer_.put(work, done.rows), done.rows.undone.size());
    }
    const std::optional<size_t> w = next(message.from);
    if (!w) {
      comm_.send(message.from, kGive, "");
      return true;
    }
    const StoreWork& work = works_[*w];
    Given given{*w, work.shard, !options_.gather && writer_.is_whole(work), work.samples, {}};
    for (const size_t i : work.samples) given.keys.push_back(samples_[i].key);
    comm_.send(message.from, kGive, to_bytes(given));
    return false;
  }

  Extractor& extractor_;
  const Dataset& dataset_;
  const std::vector<StoreSample>& samples_;
  StoreWriter& writer_;
  const std::span<const StoreWork> works_;
  const ExtractRun& run_;
  const RankOptions& options_;
  Comm& comm_;
  std::mutex mutex_;  // of all that follows, and the writer
  WorkShare share_;
  ExtractProgress progress_;
  std::exception_ptr failed_, broken_;
  std::atomic<bool> halt_{false};
};

// Sets `halt` when rank 0 says so, when a signal comes, or when the others are lost.
class Halt {
 public:
  Halt(Comm& comm, const std::atomic<bool>* stop)
      : thread_([this, &comm, stop] {
          while (!over_ && !halt) {
            try {
              if ((stop && stop->load()) || comm.poll(kHalt)) halt = true;
            } catch (const Error&) {
              halt = true;
            }
            std::this_thread::sleep_for(kLongest);
          }
        }) {}
  ~Halt() {
    over_ = true;
    thread_.join();
  }
  std::atomic<bool> halt{false};

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

std::string origin_of(const StoreOrigin& o) { return fmt::format("fungi {} on {}", o.version, o.isa); }

}  // namespace

RankJob share_job(const RankJob& job, Comm& comm) {
  const std::string bytes = comm.broadcast(comm.first() ? to_bytes(job) : "");
  return comm.alone() ? job : read_job(bytes);
}

std::vector<StoreOrigin> require_same_job(const StoreSpec& spec,
                                          const std::vector<StoreSample>& samples,
                                          const std::vector<std::string>& classes,
                                          size_t shard_size, const RankOptions& options,
                                          Comm& comm) {
  if (comm.alone()) return {};
  StoreManifest manifest;
  manifest.spec = spec;
  ByteWriter mine;
  mine.strings({to_json(manifest), FUNGI_VERSION, spec.isa, data_sum(samples, classes, shard_size)});
  mine.number(uint64_t(samples.size()));
  const std::vector<std::string> all = comm.gather(mine.take());
  std::vector<StoreOrigin> origins;
  const StoreOrigin first{FUNGI_VERSION, spec.isa};
  for (size_t r = 1; r < all.size(); ++r) {
    ByteReader in(all[r]);
    const std::vector<std::string> text = in.strings();
    const std::string place = fmt::format("rank {} on {}", r, comm.host(r));
    if (const auto count = in.number<uint64_t>(); count != samples.size())
      fail(fmt::format("{} samples are there, and {} at rank 0", count, samples.size()), place,
           "every rank needs the same data set");
    if (text[3] != data_sum(samples, classes, shard_size))
      fail("other samples or labels are there than at rank 0", place,
           "every rank needs the same data set, in the same order");
    require_same_features(spec, parse_manifest(text[0], place).spec, place,
                          "every rank needs the same model and settings");
    origins.push_back({text[1], text[2]});
    if (origins.back() != first && !options.allow_mixed)
      fail(fmt::format("{} computes there, and {} at rank 0: the bytes would not be those of one "
                       "machine",
                       origin_of(origins.back()), origin_of(first)),
           place,
           "FUNGI_ISA makes all ranks compute alike; or pass `allow_mixed`, which is recorded");
  }
  return origins;
}

namespace {

// Collective: rank 0's extractor speaks for all.
void take_counted(Extractor& extractor, Comm& comm) {
  ByteWriter own;
  own.numbers(extractor.counted());
  const std::vector<std::string> all = comm.gather(own.take());
  for (size_t r = 1; r < all.size(); ++r)
    extractor.add_counted(ByteReader(all[r]).numbers<uint64_t>());
}

}  // namespace

void begin_work(bool any, Comm& comm) { comm.broadcast(any ? "work" : ""); }
bool wait_for_work(Comm& comm) { return !comm.broadcast("").empty(); }

StoreTotals run_plan_on_ranks(Extractor& extractor, const Dataset& dataset,
                              const std::vector<StoreSample>& samples, StoreWriter& writer,
                              const std::vector<StoreWork>& plan, const ExtractRun& run,
                              const RankOptions& options, Comm& comm) {
  if (comm.alone()) return run_plan(extractor, dataset, writer, plan, run);
  const std::span<const StoreWork> todo = put_known(writer, plan, run);
  comm.broadcast(to_bytes(extractor.state(), writer.member_place()));
  FirstRank first(extractor, dataset, samples, writer, todo, run, options, comm);
  first.work();
  const StoreTotals totals = writer.finish();
  first.rethrow();
  take_counted(extractor, comm);
  return totals;
}

void work_for_first_rank(Extractor& extractor, const Dataset& dataset, const StoreSpec& spec,
                         std::vector<StoreSample> samples, const std::atomic<bool>* stop,
                         Comm& comm) {
  const std::string begin = comm.broadcast("");
  const auto [state, place] = read_begin(begin);
  extractor.restore(state);
  std::optional<MemberWriter> writer;
  Halt halting(comm, stop);
  Done done;
  for (;;) {
    comm.send(0, kDone, to_bytes(done));
    const std::string bytes = comm.receive(0, kGive);
    if (bytes.empty()) return take_counted(extractor, comm);
    const Given given = read_given(bytes);
    done.work = given.work;
    done.rows = extractor.extract(dataset, given.samples, {}, &halting.halt);
    done.kind = Done::Kind::rows;
    if (!given.write || !done.rows.undone.empty()) continue;
    if (!writer) writer.emplace(place, spec, std::move(samples), dataset.class_names());
    const StoreWork work{given.shard, given.samples};
    done.rows.failures = writer->put(work, given.keys, done.rows);
    done.rows.blocks.clear();
    done.kind = Done::Kind::written;
  }
}

}  // namespace fungi
