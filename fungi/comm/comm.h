// SPDX-License-Identifier: Apache-2.0
// Several processes at one piece of work. Bytes go from one to another; everything else is made of
// that, in one order, so that every kind of connection gives the same results. A process that is
// alone needs no special case: it is rank 0 of 1.
//
// A rank that fails tells rank 0 by tell_failure(); a rank that is silent for too long counts as
// lost. In both cases whatever waits for a message throws an Error that says which rank it was.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fungi/base/error.h"

namespace fungi {

class Comm {
 public:
  struct Message {
    size_t from = 0;
    std::string bytes;
  };
  // Messages between two ranks with one tag arrive in their order. 0 to 9 are for callers.
  using Tag = int;

  Comm() = default;
  virtual ~Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  virtual size_t rank() const = 0;
  virtual size_t size() const = 0;
  virtual std::string host(size_t rank) const = 0;  // for messages
  bool first() const { return rank() == 0; }
  bool alone() const { return size() == 1; }

  // Returns at once: the bytes travel while this rank goes on. From any thread.
  virtual void send(size_t to, Tag tag, std::string bytes) = 0;
  // Waits, asleep. Throws where the message can never come.
  virtual std::string receive(size_t from, Tag tag) = 0;
  // A message of anybody, if one is there.
  virtual std::optional<Message> poll(Tag tag) = 0;

  // Ends the wait of all others, who throw this Error with the name of this rank.
  virtual void tell_failure(const Error& error) = 0;
  // What this rank has heard of: a failure of another, or that one is lost. Nothing: all is well.
  virtual std::optional<Error> failure() const = 0;

  // Collective: every rank calls them, in the same order.
  std::string broadcast(std::string bytes);             // those of rank 0
  std::vector<std::string> gather(std::string bytes);   // at rank 0 by rank; elsewhere empty
  std::vector<std::string> all_gather(std::string bytes);
  // The sum of each number in the order of the ranks, at every rank.
  void all_reduce(std::vector<double>& numbers);
  void barrier() { all_gather(""); }
};

// A process that is alone.
std::unique_ptr<Comm> make_single();

// Whether this process was started by mpirun, srun or the like as one of several.
bool started_as_rank();
bool have_mpi();  // whether this build can talk to the others
// Joins the others; once per process. Error where this build cannot, or where they cannot be
// reached. A process that was started alone is alone. silence: seconds after which a rank that says
// nothing is lost.
std::unique_ptr<Comm> join_ranks(double silence = 60);
// Ends the process without waiting for others that are lost or failed.
[[noreturn]] void abandon_ranks(int status);

}  // namespace fungi
