// What paper 002 puts in the place of scalar expressions and array operations, so that no cache
// matters: a call of an empty function of another file.
#pragma once

namespace sterna::bench {

void nothing() noexcept;

}  // namespace sterna::bench
