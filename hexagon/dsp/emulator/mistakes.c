// Mistakes that a chip does not forgive: the byte on file 0 says which one to make. The
// machine ends the program, or the answer on file 1 shows what was read.
#include "../device/hmx.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"
#include "runtime.h"

enum { PAGE = 1 << 16 };

static uint8_t tcm[MACHINE_TCM] __attribute__((aligned(PAGE))), ddr[4 * PAGE] __attribute__((aligned(PAGE)));

static void say(const void *p, uint32_t n) { rt_write(1, p, n); }

// moved starts a transfer of a page whose bytes are all 7, to the second page of TCM.
static struct transfer *moved(void) {
  static struct transfer t;
  for (int i = 0; i < PAGE; i++) ddr[i] = 7;
  t = transfer(tcm + PAGE, ddr, PAGE, DMA_SRC_BYPASS);
  dma_start(&t, 1);
  return &t;
}

int main(void) {
  char mistake;
  if (rt_read(0, &mistake, 1) != 1) return 1;
  machine_open(tcm);
  V *in = (V *)tcm, *out = (V *)ddr;
  uint16_t *tiles = (uint16_t *)(tcm + PAGE), *outside = (uint16_t *)ddr;
  uint32_t *columns = (uint32_t *)tcm;
  struct transfer t;
  switch (mistake) {
  case '0': { // none
    struct transfer *right = moved();
    dma_wait(right, 1);
    gather(in, tiles, zero());
    *in = gathered(in);
    hmx_columns(columns + 64), hmx_clear(), hmx_multiply(tiles, tiles, 2), hmx_store(tiles);
    machine_idle();
    say(tcm + PAGE + 4096, 1);
    return 0;
  }
  case 'a': gather(out, tiles, zero()); break;
  case 'b': gather(in, outside, zero()); break;
  case 'c': gather((V *)(tcm + 64), tiles, zero()); break;
  case 'd': hmx_columns((uint32_t *)ddr); break;
  case 'e': hmx_columns(columns + 32); break;
  case 'f': hmx_multiply(outside, tiles, 1); break;
  case 'g': hmx_multiply(tiles, outside, 1); break;
  case 'h': hmx_multiply(tiles + 64, tiles, 1); break;
  case 'i': hmx_store(outside); break;
  case 'j': hmx_multiply((uint16_t *)(tcm + MACHINE_TCM - 2048), tiles, 2); break;
  case 'k': // what DMA brings is read too early, at its end
    moved();
    say(tcm + 2 * PAGE - 1, *(volatile uint8_t *)(tcm + 2 * PAGE - 1) == 7);
    break;
  case 'l': // or written
    moved();
    *(volatile uint8_t *)(tcm + PAGE) = 1;
    break;
  case 'm':
    moved();
    machine_idle();
    break;
  case 'n':
    moved();
    t = transfer(tcm, ddr, 128, 0);
    dma_start(&t, 1);
    break;
  case 'o': dma_wait(&t, 1); break;
  case 'p':
    t = transfer(tcm, ddr + 64, 128, 0);
    dma_start(&t, 1);
    break;
  case 'q':
    t = transfer(ddr, tcm, 128, DMA_SRC_BYPASS);
    dma_start(&t, 1);
    break;
  case 'r': { // a descriptor is used again as it is
    struct transfer *done = moved();
    dma_wait(done, 1);
    dma_start(done, 1);
    break;
  }
  case 's': // what a buffer within a page holds is nonsense until it is waited for
    t = transfer(tcm + 4096, ddr, 128, 0);
    dma_start(&t, 1);
    say(tcm + 4096, 1);
    return 0;
  case 't': // what a request has left in TCM
    tcm[4096] = 7;
    machine_poison();
    say(tcm + 4096, 1);
    return 0;
  case 'u': // packets that wait for a gather, then one that comes late enough
    gather(in, tiles, zero());
    (void)gathered(in);
    gather(in, tiles, zero());
    for (volatile int i = 0; i < 16; i++) {}
    (void)gathered(in);
    say(&machine.counts.exposed, sizeof machine.counts.exposed);
    return 0;
  }
  return 0; // the machine has forgiven it
}
