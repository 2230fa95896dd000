// SPDX-License-Identifier: Apache-2.0
// Comm through MPI: the one file that knows it. Waiting sleeps, where MPI's own would keep a core
// busy. A thread of each process keeps messages moving while the others compute, and says every few
// seconds that it is alive, so that a machine that is gone is noticed long before TCP notices.
#include <fmt/format.h>

#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"

#ifdef FUNGI_HAVE_MPI
#define OMPI_SKIP_MPICXX
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>

namespace fungi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAlive = 20, kFailure = 21;
constexpr size_t kPiece = size_t{1} << 30;  // bytes of one MPI message: its counts are int
constexpr auto kTick = std::chrono::milliseconds(5);

// A message that travels: its length, then its bytes.
struct Sent {
  std::string bytes;
  uint64_t length = 0;
  std::vector<MPI_Request> requests;
};

class Ranks final : public Comm {
 public:
  explicit Ranks(double silence) : silence_(silence) {
    int given = 0, rank = 0, size = 1;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
    if (given < MPI_THREAD_SERIALIZED)
      fail("this MPI lets one thread alone talk", "MPI", "use one with MPI_THREAD_SERIALIZED");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank_ = size_t(rank), size_ = size_t(size);
    heard_.assign(size_, Clock::now());
    hosts_.assign(size_, "");
    watcher_ = std::thread([this] { watch(); });
    try {
      char name[256] = "";
      ::gethostname(name, sizeof name - 1);
      const std::vector<std::string> hosts = all_gather(name);
      const std::lock_guard lock(mutex_);
      hosts_ = hosts;
    } catch (...) {
      over_ = true;
      watcher_.join();
      throw;
    }
  }

  // All leave together: whoever left first would look lost.
  ~Ranks() override {
    if (!failure()) {
      try {
        barrier();
      } catch (const Error&) {  // told by failure()
      }
    }
    over_ = true;
    watcher_.join();
    if (!failure()) MPI_Finalize();
  }

  size_t rank() const override { return rank_; }
  size_t size() const override { return size_; }
  std::string host(size_t rank) const override {
    const std::lock_guard lock(mutex_);
    return hosts_.at(rank);
  }

  void send(size_t to, Tag tag, std::string bytes) override {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
    start(to, tag, std::move(bytes));
  }

  std::string receive(size_t from, Tag tag) override {
    FUNGI_ASSERT(from < size_ && from != rank_);
    for (auto pause = std::chrono::microseconds(20);; pause = std::min(pause * 2, kLongest)) {
      {
        const std::lock_guard lock(mutex_);
        if (failure_) throw Error(*failure_);
        move_on();
        if (waits(int(from), tag)) return take(from, tag);
      }
      std::this_thread::sleep_for(pause);
    }
  }

  std::optional<Message> poll(Tag tag) override {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
    move_on();
    const auto from = waits(MPI_ANY_SOURCE, tag);
    if (!from) return {};
    return Message{*from, take(*from, tag)};
  }

  // Rank 0 is given the time to save what there is: it ends the others when it is done.
  void tell_failure(const Error& error) override {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) {
        failure_ = Error(fmt::format("rank {} on {}: {}", rank_, hosts_[rank_], error.message()),
                         error.place(), error.hint());
        tell_others();
      }
    }
    const auto begin = Clock::now();
    while (rank_ == 0 ? seconds_since(begin) < 1 && travelling() : hears_first())
      std::this_thread::sleep_for(kTick);
  }

  std::optional<Error> failure() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  static constexpr std::chrono::microseconds kLongest{2000};  // a look costs some 10

  void check(int status) {
    if (status == MPI_SUCCESS || failure_) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(status, text, &length);
    failure_ = Error(fmt::format("the connection between the ranks broke: {}", text), "MPI",
                     "repeat the command: what was finished is kept");
  }

  void tell_others() {
    ByteWriter text;
    text.strings({failure_->message(), failure_->place(), failure_->hint()});
    const std::string bytes = text.take();
    for (size_t r = 0; r < size_; ++r)
      if (r != rank_) start(r, kFailure, bytes);
  }

  bool travelling() {
    const std::lock_guard lock(mutex_);
    move_on();
    return !sent_.empty();
  }

  bool hears_first() {
    const std::lock_guard lock(mutex_);
    move_on();
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(0, kAlive, MPI_COMM_WORLD, &there, &status);
    if (there) {
      char none[sizeof(uint64_t)];
      MPI_Recv(none, int(sizeof none), MPI_BYTE, 0, kAlive, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      heard_[0] = Clock::now();
    }
    return seconds_since(heard_[0]) < silence_;
  }

  void start(size_t to, Tag tag, std::string bytes) {
    Sent& sent = sent_.emplace_back();
    sent.bytes = std::move(bytes);
    sent.length = sent.bytes.size();
    const auto piece = [&](const void* data, size_t count) {
      check(MPI_Isend(data, int(count), MPI_BYTE, int(to), tag, MPI_COMM_WORLD,
                      &sent.requests.emplace_back()));
    };
    piece(&sent.length, sizeof sent.length);
    for (size_t at = 0; at < sent.bytes.size(); at += kPiece)
      piece(sent.bytes.data() + at, std::min(kPiece, sent.bytes.size() - at));
  }

  void move_on() {
    for (auto sent = sent_.begin(); sent != sent_.end();) {
      int done = 0;
      check(MPI_Testall(int(sent->requests.size()), sent->requests.data(), &done,
                        MPI_STATUSES_IGNORE));
      sent = done ? sent_.erase(sent) : std::next(sent);
    }
  }

  std::optional<size_t> waits(int from, Tag tag) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status));
    if (!there) return {};
    return size_t(status.MPI_SOURCE);
  }

  // Its pieces follow one another; while they travel, others have their turn.
  void await_piece(void* data, size_t count, size_t from, Tag tag) {
    MPI_Request request;
    check(MPI_Irecv(data, int(count), MPI_BYTE, int(from), tag, MPI_COMM_WORLD, &request));
    const auto begin = Clock::now();
    for (int done = 0; !failure_;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done) return;
      if (seconds_since(begin) > silence_) lose(from);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    throw Error(*failure_);
  }

  std::string take(size_t from, Tag tag) {
    uint64_t length = 0;
    await_piece(&length, sizeof length, from, tag);
    std::string bytes(length, '\0');
    for (size_t at = 0; at < length; at += kPiece)
      await_piece(bytes.data() + at, std::min<size_t>(kPiece, length - at), from, tag);
    heard_[from] = Clock::now();
    return bytes;
  }

  static double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }

  void lose(size_t rank) {
    failure_ = Error(fmt::format("rank {} on {} has been silent for {:g} seconds", rank,
                                 hosts_[rank].empty() ? "its host" : hosts_[rank], silence_),
                     "MPI",
                     "is its host there, and the network? What was finished is kept: repeat the "
                     "command, with any number of ranks");
    if (rank_ == 0) tell_others();
  }

  // Rank 0 hears of everybody, and everybody of rank 0.
  void watch() {
    auto next = Clock::now();
    const auto every = std::chrono::duration<double>(std::min(silence_ / 6, 5.0));
    while (!over_) {
      {
        const std::lock_guard lock(mutex_);
        if (failure_ && rank_ != 0) return;
        const size_t first = rank_ == 0 ? 1 : 0, last = rank_ == 0 ? size_ : 1;
        if (Clock::now() >= next) {
          for (size_t r = first; r < last; ++r) start(r, kAlive, "");
          next = Clock::now() + std::chrono::duration_cast<Clock::duration>(every);
        }
        failure_ ? move_on() : listen(first, last);
      }
      std::this_thread::sleep_for(kTick);
    }
  }

  void listen(size_t first, size_t last) {
    try {
      move_on();
      while (const auto from = waits(MPI_ANY_SOURCE, kAlive)) take(*from, kAlive);
      if (const auto from = waits(MPI_ANY_SOURCE, kFailure)) {
        const std::string bytes = take(*from, kFailure);
        const std::vector<std::string> text = ByteReader(bytes).strings();
        failure_ = Error(text.at(0), text.at(1), text.at(2));
      }
      for (size_t r = first; r < last; ++r)
        if (!failure_ && seconds_since(heard_[r]) > silence_) lose(r);
    } catch (const Error&) {  // failure_ has it
    }
  }

  const double silence_;
  size_t rank_ = 0, size_ = 1;
  mutable std::mutex mutex_;  // held for every call of MPI
  std::list<Sent> sent_;
  std::vector<Clock::time_point> heard_;
  std::vector<std::string> hosts_;
  std::optional<Error> failure_;
  std::atomic<bool> over_{false};
  std::thread watcher_;
};

}  // namespace

bool have_mpi() { return true; }

std::unique_ptr<Comm> join_ranks(double silence) {
  if (!started_as_rank()) return make_single();
  auto ranks = std::make_unique<Ranks>(silence);
  return ranks;
}

void abandon_ranks(int status) {
  int running = 0;
  MPI_Initialized(&running);
  if (running) MPI_Abort(MPI_COMM_WORLD, status);
  ::_exit(status);
}

}  // namespace fungi

#else
#include <unistd.h>

namespace fungi {

bool have_mpi() { return false; }

std::unique_ptr<Comm> join_ranks(double) {
  if (started_as_rank())
    fail("this process is one of several, but this build of fungi cannot talk to the others", "MPI",
         "build it with Open MPI (Debian's mpi-default-dev, -DFUNGI_MPI=ON); or share the work by "
         "`part` and `merge`, which need none");
  return make_single();
}

void abandon_ranks(int status) { ::_exit(status); }

}  // namespace fungi
#endif
