// The node that this process is, for code of ranks and signal handlers, which get no object.
#pragma once

namespace sterna::runtime {

class Node;

/// Null before Node::open and in process mode. Constant while ranks run.
[[nodiscard]] Node* node_of_process() noexcept;

}  // namespace sterna::runtime
