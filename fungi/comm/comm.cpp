// SPDX-License-Identifier: Apache-2.0
#include "fungi/comm/comm.h"

#include <cstdlib>

#include "fungi/comm/bytes.h"

namespace fungi {
namespace {

constexpr Comm::Tag kCollective = 10;

class Single final : public Comm {
 public:
  size_t rank() const override { return 0; }
  size_t size() const override { return 1; }
  std::string host(size_t) const override { return "this machine"; }
  void send(size_t, Tag, std::string) override { FUNGI_ASSERT(!"there is nobody to send to"); }
  std::string receive(size_t, Tag) override { FUNGI_ASSERT(!"there is nobody to wait for"); return ""; }
  std::optional<Message> poll(Tag) override { return {}; }
  void tell_failure(const Error&) override {}
  std::optional<Error> failure() const override { return {}; }
};

}  // namespace

std::unique_ptr<Comm> make_single() { return std::make_unique<Single>(); }

bool started_as_rank() {
  // mpirun says how many there are, and so do most of the others; behind srun with PMIx Slurm does.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* size = std::getenv(name))
      return std::atoi(size) > 1 && (name[0] != 'S' || std::getenv("PMIX_RANK"));
  return std::getenv("PMIX_RANK") != nullptr;
}

// Along a tree: rank r has it from r without its lowest bit.
std::string Comm::broadcast(std::string bytes) {
  const size_t n = size(), r = rank();
  size_t bit = 1;
  while (bit < n && !(r & bit)) bit <<= 1;
  if (r != 0) bytes = receive(r & ~bit, kCollective);
  for (bit >>= 1; bit > 0; bit >>= 1)
    if (r + bit < n) send(r + bit, kCollective, bytes);
  return bytes;
}

std::vector<std::string> Comm::gather(std::string bytes) {
  if (!first()) {
    send(0, kCollective, std::move(bytes));
    return {};
  }
  std::vector<std::string> all{std::move(bytes)};
  for (size_t r = 1; r < size(); ++r) all.push_back(receive(r, kCollective));
  return all;
}

std::vector<std::string> Comm::all_gather(std::string bytes) {
  ByteWriter out;
  if (std::vector<std::string> all = gather(std::move(bytes)); first()) out.strings(all);
  const std::string together = broadcast(out.take());
  return ByteReader(together).strings();
}

void Comm::all_reduce(std::vector<double>& numbers) {
  ByteWriter mine;
  mine.numbers(numbers);
  const std::vector<std::string> all = gather(mine.take());
  ByteWriter sum;
  if (first()) {
    for (size_t r = 1; r < size(); ++r) {
      const auto other = ByteReader(all[r]).numbers<double>();
      FUNGI_ASSERT(other.size() == numbers.size());
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += other[i];
    }
    sum.numbers(numbers);
  }
  const std::string total = broadcast(sum.take());
  numbers = ByteReader(total).numbers<double>();
}

}  // namespace fungi
