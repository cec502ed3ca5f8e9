// See filiation.h.
#include "sched/filiation.h"

#include <cstdio>
#include <memory>
#include <new>

namespace sterna::sched {

/// The bubble of the children of one thread.
class Family final : public Bubble {
 public:
  Family* outer = nullptr;      // That holds it and counts it; null: none of ours. Constant.
  Family* outermost = nullptr;  // Of ours around it: perhaps itself. Constant.
  // Guard of all below: Filiation::lock_.
  Entity* creator = nullptr;  // Null: it has ended.
  std::uint32_t members = 0;  // Children and families, in the tree or on their way.
  // Of an outermost one: children at any depth when the policy looked last, and since.
  std::uint32_t known = 0;
  std::uint32_t born = 0;
  Family* next_free = nullptr;
  char text[64] = {};  // Its name.
};

Filiation::~Filiation() {
  while (free_children_ != nullptr) {
    delete take(free_children_);
  }
  while (free_families_ != nullptr) {
    delete take(free_families_);
  }
}

/// As new; null: no memory.
template <typename Node>
Node* Filiation::take(Node*& free) noexcept {
  Node* node = nullptr;
  {
    const SpinGuard guard{lock_};
    node = free;
    free = node != nullptr ? node->next_free : nullptr;
  }
  if (node == nullptr) {
    return new (std::nothrow) Node;
  }
  std::destroy_at(node);
  return std::construct_at(node);
}

template <typename Node>
void Filiation::give(Node*& free, Node& node) noexcept {
  const SpinGuard guard{lock_};
  node.next_free = free;
  free = &node;
}

Result<Entity*> Filiation::birth(Entity* creator, const BirthOptions& options) noexcept {
  Child* const child = take(free_children_);
  if (child == nullptr) {
    return Errc::out_of_memory;
  }
  child->is_of_filiation_ = true;
  child->makes_bubbles = options.makes_bubbles;
  child->program_place = options.program_place;
  child->load = options.load;
  Result<> is_put = Done{};
  if (creator == nullptr || !creator->makes_bubbles) {
    is_put = engine_.insert(engine_.root(), *child);
    if (is_put) {
      engine_.grow(*child);
    }
  } else if (Family* const family = enter_own(*creator, options.creator_name); family != nullptr) {
    is_put = put(*child, *family, *creator);
  } else {
    is_put = put_beside(*child, *creator);
  }
  if (!is_put) {
    give(free_children_, *child);
    return is_put.error();
  }
  return child;
}

/// Counts one more in the family of the creator's children, who is the caller: it stays from now
/// on. Null: it cannot be made.
Family* Filiation::enter_own(Entity& creator, std::string_view creator_name) noexcept {
  {
    const SpinGuard guard{lock_};
    // Only the creator stores it, and the last one to leave takes it away.
    if (auto* const family = static_cast<Family*>(creator.children_); family != nullptr) {
      ++family->members;
      return family;
    }
  }
  return make_own(creator, creator_name);
}

Family* Filiation::make_own(Entity& creator, std::string_view creator_name) noexcept {
  Family* const family = take(free_families_);
  if (family == nullptr) {
    return nullptr;
  }
  family->is_of_filiation_ = true;
  family->members = 1;
  family->creator = &creator;
  family->outermost = family;
  if (!creator_name.empty()) {
    std::snprintf(family->text, sizeof family->text, "children of %.*s",
                  static_cast<int>(creator_name.size()), creator_name.data());
    family->name = family->text;
  }
  auto holder = engine_.insert_beside(creator, *family);
  if (!holder) {
    give(free_families_, *family);
    return nullptr;
  }
  const SpinGuard guard{lock_};
  if (holder.value()->is_of_filiation_) {  // The creator is in there, so it stays.
    family->outer = static_cast<Family*>(holder.value());
    family->outermost = family->outer->outermost;
    ++family->outer->members;
  }
  creator.children_ = family;
  return family;
}

Result<> Filiation::put(Child& child, Family& family, const Entity& creator) noexcept {
  if (Result<> inserted = engine_.insert(family, child); !inserted) {
    leave(&family);
    return put_beside(child, creator);
  }
  child.home = &family;
  Family& outermost = *family.outermost;
  bool is_told = false;
  {
    const SpinGuard guard{lock_};
    is_told = ++outermost.born >= outermost.known;
    if (is_told) {  // It has doubled: the cost of all looks together is linear.
      outermost.known += outermost.born;
      outermost.born = 0;
    }
  }
  if (is_told) {
    engine_.grow(outermost);
  }
  return Done{};
}

/// Bubbles are nested too deep, or there is no memory for one.
Result<> Filiation::put_beside(Child& child, const Entity& creator) noexcept {
  auto holder = engine_.insert_beside(creator, child);
  if (!holder) {
    return holder.error();
  }
  if (holder.value()->is_of_filiation_) {
    child.home = static_cast<Family*>(holder.value());
    const SpinGuard guard{lock_};
    ++child.home->members;  // The creator is in there, so it stays.
  }
  return Done{};
}

void Filiation::ended(Entity& entity) noexcept {
  if (entity.makes_bubbles) {
    const SpinGuard guard{lock_};
    if (auto* const family = static_cast<Family*>(entity.children_); family != nullptr) {
      family->creator = nullptr;
      entity.children_ = nullptr;
    }
  }
  const bool is_ours = entity.is_of_filiation_;
  engine_.remove(entity);  // Another one's memory may be gone then.
  if (is_ours) {
    auto& child = static_cast<Child&>(entity);
    Family* const home = child.home;
    give(free_children_, child);
    leave(home);
  }
}

void Filiation::leave(Family* family) noexcept {
  while (family != nullptr) {
    {
      const SpinGuard guard{lock_};
      if (--family->members != 0) {
        return;
      }
      if (family->creator != nullptr) {
        family->creator->children_ = nullptr;
      }
    }
    engine_.remove(*family);
    Family* const outer = family->outer;
    give(free_families_, *family);
    family = outer;
  }
}

}  // namespace sterna::sched
