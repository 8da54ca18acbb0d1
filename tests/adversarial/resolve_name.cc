// resolve_name NAME: says "found", or what getaddrinfo(3) answers. Linked dynamically: a resolver
// loads its parts when it is asked.
#include <netdb.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(argv[1], "80", nullptr, &found);
  if (error != 0) return std::printf("not found: %s\n", ::gai_strerror(error)) < 0 ? 1 : 0;
  ::freeaddrinfo(found);
  return std::puts("found") < 0 ? 1 : 0;
}
