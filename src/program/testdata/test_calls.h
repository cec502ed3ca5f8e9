// What test programs may ask of the test host, like calls of MPI. Weak, so that they link without a
// library that has them.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) int sterna_test_rank(void);
__attribute__((weak)) void sterna_test_yield(void); /* Switches: other ranks run. */
/* Leaves the processor until the test goes on; may come back elsewhere. */
__attribute__((weak)) void sterna_test_pause(void);
/* 1: memory is the rank's in its code and in callbacks, and the node's in the runtime. */
__attribute__((weak)) int sterna_test_memory(void);
#ifdef __cplusplus
}
#endif
