// Mistakes that a chip does not forgive: the byte on file 0 says which one to make. The
// machine ends the program, or the answer on file 1 shows what was read.
#include "../device/hmx.h"
#include "../device/queue.h"
#include "../device/tile.h"
#include "../device/workers.h"
#include "../kernels/kernels.h"
#include "../kernels/machine.h"
#include "runtime.h"
#include "shards.h"

static uint8_t tcm[MACHINE_TCM] __attribute__((aligned(HMX_WINDOW))), ddr[4 * PAGE] __attribute__((aligned(PAGE)));

static void say(const void *p, uint32_t n) { rt_write(1, p, n); }

// moved begins a transfer of a page whose bytes are all 7, to the second page of TCM.
static struct transfer first, second, third;
static struct transfer *moved(void) {
  for (int i = 0; i < PAGE; i++) ddr[i] = 7;
  first = transfer(tcm + PAGE, ddr, PAGE, DMA_SRC_BYPASS);
  dma_link(0, 0, &first);
  return &first;
}

// beside begins another one behind it, of 128 bytes that are no whole page.
static struct transfer *beside(void) {
  moved();
  second = transfer(tcm + 4096, ddr + PAGE, 128, 0);
  dma_link(0, &first, &second);
  return &second;
}

// product is what the tile unit's queue has: a result, activations and weights, of a tile each.
static struct machine_claim product(uint8_t *out) {
  struct machine_claim c = {MACHINE_TILES, out, TILE_BYTES, 0, {{tcm, TILE_BYTES, 0}, {tcm + TILE_BYTES, TILE_BYTES, 0}}};
  machine_claim(&c);
  machine_queues(1, rt_packets());
  return c;
}

static char mistake;
static struct memory memory = {.base = {ddr - TCM_BYTES}, .tcm = tcm, .size = TCM_BYTES + sizeof ddr};

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
  memory.share(&(struct operation){&p, &memory, 4, 1, shards, 0});
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
      else run_shard(&(struct operation){&(struct packet){OP_VLUT16, {TCM_BYTES}}, &memory, 1, 1, 1, 0}, 0);
      for (int i = 0; i < shards; i++) sum += ((volatile uint8_t *)ddr)[i];
    }
    workers_close();
    say(&sum, 1);
  }
}

// queued has 1, 2 and 20 products, of which the ring holds 16, computed by the queue's thread, and says how many are right.
static void queued(void) {
  uint16_t *t = (uint16_t *)tcm;
  for (int i = 0; i < 2048; i++) t[i] = 0x3c00; // 1: sums of 32
  uint8_t right = 0;
  const struct tile_unit *unit = queue_open();
  for (int n = 1; n <= 20; n += n == 1 ? 1 : 18) {
    uint32_t number = 0;
    uint8_t *out = tcm + PAGE;
    for (int i = 0; i < n; i++, out += TILE_BYTES)
      *(uint16_t *)out = 0, number = unit->push(&(struct tile_mul){(uint16_t *)out, t, t + 1024, 1, 0, 0, 0, 1, 1, 0x3c00, 0, (uint32_t *)(tcm + PAGE / 2)});
    unit->wait(number);
    for (int i = 0; i < n; i++) right += *(volatile uint16_t *)(tcm + PAGE + i * TILE_BYTES) == 0x5000;
    if (n == 1) queue_rest();
  }
  queue_close();
  say(&right, 1);
}

// crossing has products of four pairs of tiles, in which boundaries of 256 KiB lie elsewhere in each operand, and says their results.
static void crossing(void) {
  uint16_t *out = (uint16_t *)(tcm + PAGE), *act = (uint16_t *)(tcm + HMX_WINDOW - TILE_BYTES), *wgt = (uint16_t *)(tcm + 2 * HMX_WINDOW - 3 * TILE_BYTES);
  for (int i = 0; i < 4 * 1024; i++) act[i] = wgt[i] = 0x3c00; // 1
  tile_mul(&(struct tile_mul){out, act, wgt, 4, 0, 0, 0, 1, 1, 0x3c00, 0, (uint32_t *)tcm});
  say(out, 2);
  uint8_t *codes = (uint8_t *)act, *lanes = tcm + 2 * HMX_WINDOW - 3 * LANES_BYTES;
  for (int i = 0; i < 4 * TILE_BYTES; i++) codes[i] = 2;
  for (int i = 0; i < 4 * LANES_BYTES; i++) lanes[i] = 3;
  tile_mul(&(struct tile_mul){.out = out, .act0 = act, .wgt0 = (uint16_t *)lanes, .k0 = 4, .rows = 1, .cols = 1, .columns = (uint32_t *)tcm, .bytes = 1});
  for (int p = 0; p < PLANES; p++) say((uint8_t *)out + p * TILE_BYTES, 1);
}

int main(void) {
  if (rt_read(0, &mistake, 1) != 1) return 1;
  shards_open(&memory, 1);
  machine_open(tcm);
  V *in = (V *)tcm, *out = (V *)ddr;
  uint16_t *tiles = (uint16_t *)(tcm + PAGE), *outside = (uint16_t *)ddr;
  uint32_t *columns = (uint32_t *)tcm;
  struct machine_claim c;
  if (mistake != 'N') machine_tiles(1);
  switch (mistake) {
  case '0': { // none
    dma_finish(0, beside());
    c = product(tcm + PAGE);
    machine_release(&c);
    machine_queues(0, rt_packets());
    gather(in, tiles, zero());
    *in = gathered(in);
    hmx_columns(columns + 64), hmx_clear(), hmx_multiply(tiles, tiles, 2), hmx_store(tiles);
    machine_tiles(0);
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
  case 'O': hmx_multiply_bytes((uint8_t *)tiles, ddr, 1); break;
  case 'P': hmx_multiply_bytes(ddr, (uint8_t *)tiles, 1); break;
  case 'Q': hmx_store_plane((uint8_t *)tiles, columns + 16); break;
  case 'R': hmx_store_plane((uint8_t *)tiles + 1024, columns); break;
  case 'S': hmx_multiply((uint16_t *)(tcm + HMX_WINDOW - 2048), tiles, 2); break; // across a boundary: activations, weights
  case 'T': hmx_multiply(tiles, (uint16_t *)(tcm + HMX_WINDOW - 2048), 2); break;
  case 'U': hmx_multiply_bytes((uint8_t *)tiles, tcm + HMX_WINDOW - 1024, 2); break;
  case 'V': crossing(); return 0;
  case 'W': // the tile unit is used, and given back, by one who has not locked it; locked twice; never given back
    machine_tiles(0);
    hmx_columns(columns + 64);
    break;
  case 'X': machine_tiles(0), machine_tiles(0); break;
  case 'Y': machine_tiles(1); break;
  case 'Z': machine_idle(); break;
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
    machine_tiles(0), machine_idle();
    break;
  case 'n':
    moved();
    second = transfer(tcm, ddr, 128, 0);
    dma_link(0, 0, &second);
    break;
  case 'o': dma_finish(0, &second); break;
  case 'p':
    second = transfer(tcm, ddr + 64, 128, 0);
    dma_link(0, 0, &second);
    break;
  case 'q':
    second = transfer(ddr, tcm, 128, DMA_SRC_BYPASS);
    dma_link(0, 0, &second);
    break;
  case 'r': // a descriptor is used again as it is
    dma_finish(0, moved());
    dma_link(0, 0, &first);
    break;
  case 'A': // or before its transfer is done
    beside();
    first = transfer(tcm + 8192, ddr, 128, 0);
    dma_finish(0, &second);
    break;
  case 'B': // linked to one that others have been linked to
    beside();
    third = transfer(tcm + 8192, ddr, 128, 0);
    dma_link(0, &first, &third);
    break;
  case 'C': // to one that has ended
    dma_finish(0, moved());
    second = transfer(tcm + 4096, ddr, 128, 0);
    dma_link(0, &first, &second);
    break;
  case 'D': // a ring goes round before its oldest transfer is waited for
    for (int i = 0; i < 2 * DMA_RING; i++) dma_push(0, tcm + i * 128, ddr, 128, 0);
    dma_wait(0, 2 * DMA_RING);
    say(&machine.counts.flying, 2);
    return 0;
  case 'E': // part of a page is written before it is waited for
    beside();
    *(volatile uint8_t *)(tcm + 4096) = 1;
    dma_finish(0, &second);
    break;
  case 'F': // or what is read
    beside();
    ddr[PAGE] = 1;
    dma_finish(0, &second);
    break;
  case 'G': // a wait for what has ended before
    dma_finish(0, beside());
    dma_finish(0, &first);
    break;
  case 'H': // the older one of two has not arrived with the other's start
    beside();
    dma_finish(0, &first);
    say(tcm + PAGE, 1);
    say(tcm + 4096, 1);
    return 0;
  case 'I': // a result is read, of a whole page
    c = (struct machine_claim){MACHINE_TILES, tcm + PAGE, PAGE, 0, {{tcm, TILE_BYTES, 0}}};
    machine_claim(&c);
    say(tcm + PAGE, *(volatile uint8_t *)(tcm + PAGE) == 7);
    break;
  case 'J': // or written
    c = product(tcm + PAGE);
    tcm[PAGE] = 1;
    machine_release(&c);
    break;
  case 'K': // weights are written
    c = product(tcm + PAGE);
    tcm[TILE_BYTES] ^= 1;
    machine_release(&c);
    break;
  case 'L':
    c = product(tcm + PAGE);
    machine_tiles(0), machine_idle();
    break;
  case 'M': // what a product is to write is nonsense until it is waited for
    c = product(tcm + PAGE);
    say(tcm + PAGE, 1);
    return 0;
  case 'N': queued(); return 0;
  case '1': // transfers that meet older ones of their engine: one reads what the first brings, one writes where that reads
    moved();
    second = transfer(ddr + PAGE, tcm + PAGE, 128, 0), third = transfer(ddr, ddr + 2 * PAGE, 128, 0);
    dma_link(0, &first, &second), dma_link(0, &second, &third);
    dma_finish(0, &first), dma_finish(0, &third);
    say(tcm + PAGE, 1), say(ddr + PAGE, 1), say(ddr, 1);
    return 0;
  case 's': // what a buffer within a page holds is nonsense until it is waited for
    beside();
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
