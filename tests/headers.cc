// Nothing: CMake wants a program to precompile tests/headers.h for.
int main() {}
