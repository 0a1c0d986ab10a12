// Mistakes that a chip does not forgive: the byte on file 0 says which one to make. The
// machine ends the program, or the answer on file 1 shows what was read.
#include "../device/hmx.h"
#include "../device/workers.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"
#include "runtime.h"
#include "shards.h"

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

static char mistake;
static struct memory memory = {.base = ddr - TCM_BYTES, .tcm = tcm, .size = TCM_BYTES + sizeof ddr};

// run_shard stands for an operation's: vector i of its output is shard i's.
void run_shard(const struct operation *o, int shard) {
  V *out = at(o->memory, o->packet->args[0]);
  switch (mistake) {
  case 'v': ((uint32_t *)out)[shard] = 7; break;  // halves of a vector
  case 'w': out[shard] = shard ? out[0] : splat_b(7); break; // no barrier between them
  case 'x': out[0] = splat_b((uint32_t)shard); break;        // of the first one's TCM
  case 'y': out[shard] = splat_b(7); break;
  default: // threads, the first of which are the slowest
    for (volatile int i = (o->shards - shard) << 12; i; i--) {}
    ((volatile uint8_t *)out)[shard]++;
  }
}

static void share(uint32_t where, int shards) {
  const struct packet p = {OP_VLUT16, {where, 0, 4}};
  memory.share(&(struct operation){&p, &memory, 4, 1, shards});
}

// threads has 1 to 6 workers add to a number each, and says what there is when all have answered.
static void threads(void) {
  for (int workers = 1; workers <= 6; workers++) {
    uint8_t sum = 0;
    const int n = workers_open(workers);
    for (int turn = 0; turn < 20; turn++) {
      const int shards = 2 + turn % 5 < n ? 2 + turn % 5 : n;
      for (int i = 0; i < shards; i++) ddr[i] = 0;
      if (shards > 1) share(TCM_BYTES, shards);
      else run_shard(&(struct operation){&(struct packet){OP_VLUT16, {TCM_BYTES}}, &memory, 1, 1, 1}, 0);
      for (int i = 0; i < shards; i++) sum += ((volatile uint8_t *)ddr)[i];
    }
    workers_close();
    say(&sum, 1);
  }
}

int main(void) {
  if (rt_read(0, &mistake, 1) != 1) return 1;
  shards_open(&memory, 1);
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
  case 'v':
  case 'w':
  case 'y': share(TCM_BYTES, 2); say(ddr + 128, 1); return 0;
  case 'x': share(PAGE, 2); break;
  case 'z':
    memory.share = workers_share;
    threads();
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
