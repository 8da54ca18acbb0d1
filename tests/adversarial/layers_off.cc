#include "tests/adversarial/layers_off.h"

namespace sbx::test {
namespace {

using plan::Step;
using plan::step_bit;
using policy::Layer;
using policy::layer_bit;
using policy::LayerMask;

struct Switch {
  Layer layer;
  plan::StepMask weakened;  // 0: by another means, below
};

constexpr Switch kSwitches[] = {
    {Layer::kUserNamespace, step_bit(Step::kUserNamespace) | step_bit(Step::kIdMaps) |
                                step_bit(Step::kNoMoreUserNamespaces) |
                                step_bit(Step::kUserLimits)},
    {Layer::kNetNamespace, 0},
    {Layer::kIpcNamespace, 0},
    {Layer::kUtsNamespace, 0},
    {Layer::kCgroupNamespace, step_bit(Step::kCgroupNamespace)},
    {Layer::kRootfs, step_bit(Step::kRootfs) | step_bit(Step::kDevices) | step_bit(Step::kPivot) |
                         step_bit(Step::kReadOnlyInputs)},
    {Layer::kProc, step_bit(Step::kProc) | step_bit(Step::kReadOnlyProc) | step_bit(Step::kMasks)},
    {Layer::kCgroup, 0},
    {Layer::kSeccomp, step_bit(Step::kSeccomp)},
    {Layer::kCapabilities, step_bit(Step::kBoundingSet) | step_bit(Step::kCapabilities)},
    {Layer::kNoNewPrivs, step_bit(Step::kNoNewPrivs)},
    {Layer::kRlimits, step_bit(Step::kRlimits)},
    {Layer::kUidSeparation, 0},
    {Layer::kLandlock, step_bit(Step::kLandlock)},
    {Layer::kTimeNamespace, step_bit(Step::kTimeNamespace)},
    {Layer::kCpuset, step_bit(Step::kAffinity)},
};

// Said to be missing on this host, which the plan then does without.
constexpr LayerMask kByAbsence = layer_bit(Layer::kNetNamespace) | layer_bit(Layer::kIpcNamespace) |
                                 layer_bit(Layer::kUtsNamespace) | layer_bit(Layer::kCgroup);

constexpr LayerMask all_switchable() {
  LayerMask all = 0;
  for (const Switch& entry : kSwitches) all |= layer_bit(entry.layer);
  return all;
}

}  // namespace

const std::vector<Layer>& switchable_layers() {
  static const std::vector<Layer> all = [] {
    std::vector<Layer> layers;
    for (const Switch& entry : kSwitches) layers.push_back(entry.layer);
    return layers;
  }();
  return all;
}

Weakening without(LayerMask layers) {
  const LayerMask asks_privilege = layer_bit(Layer::kSeccomp) | layer_bit(Layer::kLandlock);
  const bool privileges_free = (layers & layer_bit(Layer::kNoNewPrivs)) != 0;
  if (privileges_free && (asks_privilege & ~layers) != 0) layers |= layer_bit(Layer::kCapabilities);
  Weakening weakening;
  weakening.missing = layers & kByAbsence;
  weakening.shared_id = (layers & layer_bit(Layer::kUidSeparation)) != 0;
  weakening.without_cgroup = (layers & layer_bit(Layer::kCgroup)) != 0;
  for (const Switch& entry : kSwitches) {
    if ((layers & layer_bit(entry.layer)) != 0) weakening.weakened |= entry.weakened;
  }
  return weakening;
}

Weakening only(Layer layer) {
  return without(all_switchable() & ~layer_bit(layer));
}

Weakening bare() {
  return without(all_switchable());
}

}  // namespace sbx::test
