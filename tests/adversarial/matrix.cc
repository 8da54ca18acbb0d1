#include "tests/adversarial/matrix.h"

#include <algorithm>

#include "runtime/cli/selftest_control.h"

namespace sbx::test {
namespace {

using cli::AttackCase;
using cli::Observation;
using policy::Layer;

// How the attacks of a box share its runs.
enum class Runs {
  kTogether,      // no filter: none ends the run
  kHostileApart,  // those that end the run have one each
  kEachApart,     // all have one each, so that a counted denial is that of the attack
};

std::vector<Trial> trials_of(const cli::ControlGround& ground) {
  std::vector<Trial> trials;
  for (const AttackCase& attack : cli::attack_cases()) {
    trials.push_back({std::string(attack.act), ground.resolve(attack.argument)});
  }
  return trials;
}

// What searches its own command line must not find the others' there.
bool is_apart(const AttackCase& attack, Runs runs) {
  if (runs == Runs::kEachApart || attack.act == "words") return true;
  return runs == Runs::kHostileApart && !attack.expected.hostile_syscall.empty();
}

std::vector<Observation> observe_all(Arena& arena, const std::vector<Trial>& trials,
                                     const Weakening& weakening, Runs runs) {
  std::vector<Observation> seen(trials.size());
  std::vector<Trial> together;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (is_apart(cli::attack_cases()[i], runs)) {
      seen[i] = arena.attack(trials[i].act, trials[i].argument, weakening);
    } else {
      together.push_back(trials[i]);
      places.push_back(i);
    }
  }
  const std::vector<Observation> answers = arena.each(together, weakening);
  for (std::size_t i = 0; i < answers.size(); ++i) seen[places[i]] = answers[i];
  return seen;
}

// The act had its effect, or came as far as outside, where an act that would do harm is stopped by
// its own arguments.
bool gets_through(const AttackCase& attack, const Observation& seen, const Observation& outside) {
  if (!seen.answered) return false;
  if (seen.sys_errno != 0) return seen.sys_errno == outside.sys_errno;
  return attack.expected.looks_right == nullptr || !attack.expected.looks_right(seen.value);
}

// What a box with this layer alone shows.
bool stops_alone(const AttackCase& attack, const Observation& alone, const Observation& open,
                 const Observation& outside) {
  if (gets_through(attack, open, outside)) return !gets_through(attack, alone, outside);
  return matches(attack.expected, alone) && !matches(attack.expected, open);
}

}  // namespace

std::vector<MatrixRow> make_matrix(Arena& arena, const cli::ControlGround& ground) {
  const std::vector<Trial> trials = trials_of(ground);
  const std::vector<Observation> whole = observe_all(arena, trials, {}, Runs::kEachApart);
  const std::vector<Observation> open = observe_all(arena, trials, bare(), Runs::kTogether);
  std::vector<MatrixRow> rows(trials.size());
  std::vector<Observation> outside(trials.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const AttackCase& attack = cli::attack_cases()[i];
    const auto control = cli::run_control(attack, ground);
    EXPECT_TRUE(open[i].answered) << attack.name << ": " << open[i].trouble;
    rows[i].attack = &attack;
    rows[i].state = cli::judge(attack, whole[i], control);
    outside[i] = control.value_or(Observation{});
    if (!gets_through(attack, open[i], outside[i])) rows[i].alone.emplace_back(kNeverOff);
  }
  for (const Layer layer : switchable_layers()) {
    const std::string name(policy::layer_name(layer));
    const bool filter = layer == Layer::kSeccomp;
    const auto alone =
        observe_all(arena, trials, only(layer), filter ? Runs::kEachApart : Runs::kTogether);
    const auto others =
        observe_all(arena, trials, without(layer), filter ? Runs::kTogether : Runs::kHostileApart);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const AttackCase& attack = cli::attack_cases()[i];
      if (stops_alone(attack, alone[i], open[i], outside[i])) rows[i].alone.push_back(name);
      if (gets_through(attack, others[i], outside[i])) rows[i].needed.push_back(name);
    }
  }
  return rows;
}

}  // namespace sbx::test
