// Forks for ever, in every child too. Does not sleep, does not end.
#include <unistd.h>

int main() {
  for (;;) (void)::fork();
}
