// Intrusive doubly linked list whose elements leave it when they are destroyed. Internal to async/.
#pragma once

namespace sbx::async::detail {

// One membership. An element that can be in several lists at once has several Links, told apart by
// their Tag.
template <typename Tag>
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { unlink(); }

  [[nodiscard]] bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (!linked()) return;
    next_->previous_ = previous_;
    previous_->next_ = next_;
    next_ = previous_ = nullptr;
  }

 private:
  template <typename T, typename U>
  friend class List;
  Link* next_ = nullptr;
  Link* previous_ = nullptr;
};

// Elements are T, which derives from Link<Tag>. Elements that are left when the list dies are
// unlinked, not destroyed.
template <typename T, typename Tag>
class List {
 public:
  List() { head_.next_ = head_.previous_ = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty()) head_.next_->unlink();
    head_.next_ = head_.previous_ = nullptr;
  }

  [[nodiscard]] bool empty() const { return head_.next_ == &head_; }
  // Precondition: !empty().
  [[nodiscard]] T& front() { return static_cast<T&>(*head_.next_); }
  // Precondition: `element` is in no list by this Tag.
  void push_back(T& element) {
    Link<Tag>& link = element;
    link.next_ = &head_;
    link.previous_ = head_.previous_;
    head_.previous_->next_ = &link;
    head_.previous_ = &link;
  }
  // Moves all elements of `other` here. Precondition: empty().
  void take(List& other) {
    if (other.empty()) return;
    head_.next_ = other.head_.next_;
    head_.previous_ = other.head_.previous_;
    head_.next_->previous_ = head_.previous_->next_ = &head_;
    other.head_.next_ = other.head_.previous_ = &other.head_;
  }

 private:
  Link<Tag> head_;
};

}  // namespace sbx::async::detail
