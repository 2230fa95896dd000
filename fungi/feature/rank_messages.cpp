// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/rank_messages.h"

#include "fungi/comm/bytes.h"

namespace fungi {

std::string to_bytes(const Given& given) {
  ByteWriter out;
  out.number(given.work), out.number(given.shard), out.number(given.write);
  out.numbers(given.samples), out.strings(given.keys);
  return out.take();
}

Given read_given(const std::string& bytes) {
  ByteReader in(bytes);
  Given given;
  given.work = in.number<size_t>(), given.shard = in.number<size_t>();
  given.write = in.number<bool>();
  given.samples = in.numbers<size_t>(), given.keys = in.strings();
  return given;
}

std::string to_bytes(const Done& done) {
  ByteWriter out;
  out.number(done.kind), out.number(done.work);
  out.number(done.rows.blocks.size());
  for (const Matrix<float>& block : done.rows.blocks) out.matrix<float>(block);
  out.number(done.rows.failures.size());
  for (const StoreFailure& f : done.rows.failures)
    out.number(f.position), out.strings({f.stage, f.reason, f.hint});
  out.numbers(done.rows.undone);
  return out.take();
}

Done read_done(const std::string& bytes) {
  ByteReader in(bytes);
  Done done;
  done.kind = in.number<Done::Kind>(), done.work = in.number<size_t>();
  for (size_t left = in.number<size_t>(); left > 0; --left)
    done.rows.blocks.push_back(in.matrix<float>());
  for (size_t left = in.number<size_t>(); left > 0; --left) {
    const size_t position = in.number<size_t>();
    const std::vector<std::string> text = in.strings();
    done.rows.failures.push_back({position, text.at(0), text.at(1), text.at(2)});
  }
  done.rows.undone = in.numbers<size_t>();
  return done;
}

std::string to_bytes(const RankJob& job) {
  ByteWriter out;
  std::vector<std::string> facts;
  for (const auto& [key, value] : job.facts) facts.push_back(key), facts.push_back(value);
  out.strings(facts), out.number(job.precision), out.number(job.shard_size);
  return out.take();
}

RankJob read_job(const std::string& bytes) {
  ByteReader in(bytes);
  const std::vector<std::string> facts = in.strings();
  RankJob job;
  for (size_t i = 0; i + 1 < facts.size(); i += 2) job.facts[facts[i]] = facts[i + 1];
  job.precision = in.number<Precision>(), job.shard_size = in.number<size_t>();
  return job;
}

std::string to_bytes(const std::vector<NamedMatrix>& state, const MemberPlace& place) {
  ByteWriter out;
  out.number(state.size());
  for (const NamedMatrix& m : state) out.string(m.name), out.matrix<float>(m.values);
  out.string(place.folder.string()), out.number(place.shard_size);
  out.strings(place.first_classes);
  return out.take();
}

std::pair<std::vector<NamedMatrix>, MemberPlace> read_begin(const std::string& bytes) {
  ByteReader in(bytes);
  std::vector<NamedMatrix> state;
  for (size_t left = in.number<size_t>(); left > 0; --left) {
    std::string name = in.string();
    state.push_back({std::move(name), in.matrix<float>()});
  }
  MemberPlace place;
  place.folder = in.string(), place.shard_size = in.number<size_t>();
  place.first_classes = in.strings();
  return {std::move(state), std::move(place)};
}

}  // namespace fungi
