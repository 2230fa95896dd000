// SPDX-License-Identifier: Apache-2.0
#include "app/seeds.h"

#include "app/features.h"

namespace fungi::app {
namespace {

using Json = nlohmann::json;

// Of numbers; of lists, one for each place.
std::pair<Json, Json> spread_of_json(const std::vector<Json>& values) {
  if (!values[0].is_array()) {
    std::vector<double> numbers;
    for (const Json& value : values) numbers.push_back(value.get<double>());
    const Spread spread = spread_of(numbers);
    return {spread.mean, spread.deviation};
  }
  std::pair<Json, Json> out{Json::array(), Json::array()};
  for (size_t i = 0; i < values[0].size(); ++i) {
    std::vector<Json> inner;
    for (const Json& value : values) inner.push_back(value.at(i));
    const auto [mean, deviation] = spread_of_json(inner);
    out.first.push_back(mean), out.second.push_back(deviation);
  }
  return out;
}

// One object of each seed.
Json joined(const std::vector<uint32_t>& seeds, const std::vector<Json>& answers,
            const std::vector<std::string>& same, const std::vector<Measure>& measures) {
  Json out{{"seeds", seeds}, {"mean", Json::object()}, {"deviation", Json::object()}};
  for (const std::string& name : same) {
    for (const Json& answer : answers)
      if (answer.at(name) != answers[0].at(name))
        fail(fmt::format("expected {} to be {} for all seeds, found {}", name,
                         answers[0].at(name).dump(), answer.at(name).dump()),
             "`seeds`", "extract the stores in the same way, but for the seed");
    out[name] = answers[0].at(name);
  }
  for (const auto& [name, head] : measures) {
    std::vector<Json> values;
    for (const Json& answer : answers)
      if (answer.contains(name)) values.push_back(answer.at(name));
    if (values.size() == answers.size())
      std::tie(out["mean"][name], out["deviation"][name]) = spread_of_json(values);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    out["by_seed"].push_back(answers[i]);
    out["by_seed"].back()["seed"] = seeds[i];
  }
  return out;
}

// Of lists, place by place.
Json joined_lists(const std::vector<uint32_t>& seeds, const std::vector<Json>& answers,
                  const std::vector<std::string>& same, const std::vector<Measure>& measures) {
  Json list = Json::array();
  for (size_t i = 0; i < answers[0].size(); ++i) {
    std::vector<Json> each;
    for (const Json& one : answers) {
      if (one.size() != answers[0].size())
        fail(fmt::format("expected {} results for each seed, found {}", answers[0].size(),
                         one.size()),
             "`seeds`", "extract the stores in the same way, but for the seed");
      each.push_back(one.at(i));
    }
    list.push_back(joined(seeds, each, same, measures));
  }
  return list;
}

std::string cell(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_measures(const Json& list, const std::vector<std::string>& same,
                  const std::vector<Measure>& measures) {
  std::vector<std::string> head = same;
  for (const auto& [name, title] : measures)
    if (!title.empty()) head.insert(head.end(), {title, "±"});
  std::vector<std::vector<std::string>> table;
  for (const Json& one : list) {
    std::vector<std::string>& row = table.emplace_back();
    for (const std::string& name : same) row.push_back(cell(one.at(name)));
    for (const auto& [name, title] : measures) {
      if (title.empty()) continue;
      const bool there = one.at("mean").contains(name);
      row.push_back(there ? percent(one.at("mean").at(name)) : "-");
      row.push_back(there ? percent(one.at("deviation").at(name)) : "-");
    }
  }
  print_table(head, table);
}

}  // namespace

CLI::Option* SeedsOption::add_to(CLI::App& verb) {
  return verb
      .add_option("--seeds", seeds,
                  "Evaluate once for each seed and give mean and deviation: {seed} in the name of a "
                  "store stands for it, and what is drawn is drawn with it")
      ->type_name("SEED");
}

std::string store_path(const std::string& text, const uint32_t* seed) {
  return seed ? with_seed(text, *seed) : text;
}

int SeedsOption::run(const SeededWork& work, const std::vector<std::string>& same,
                     const std::vector<Measure>& measures, bool json, const Answer& answer,
                     const Print& print, const Print& print_joined) const {
  check_seeds(seeds, work);
  if (seeds.empty()) {
    const Json list = answer(nullptr);
    if (json)
      print_json(list);
    else
      print(list);
    return kOk;
  }
  std::vector<Json> answers;
  for (const uint32_t seed : seeds) answers.push_back(answer(&seed));
  const Json all = answers[0].is_array() ? joined_lists(seeds, answers, same, measures)
                                         : joined(seeds, answers, same, measures);
  if (json) {
    print_json(all);
    return kOk;
  }
  if (print_joined)
    print_joined(all);
  else
    print_measures(all, same, measures);
  fmt::print("± is the standard deviation over {} seeds\n", seeds.size());
  return kOk;
}

}  // namespace fungi::app
