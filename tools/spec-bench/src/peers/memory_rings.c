/*
 * Netmap ports in memory, for TLEM without the netmap kernel module.
 *
 * Port "rings:in" always has frames; port "rings:out" takes all. The linker's --wrap directs the
 * calls of apps/tlem/tlem.c here; frames are sent by the original nmport_inject().
 *
 * Environment: RINGS_SIZE (frame length), RINGS_SOURCE (bytes of source memory), RINGS_NS (duration
 * of the measurement). At its end, a line of JSON on stdout reports the counts from the first
 * transmission to the last reception.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <libnetmap.h>

#define RX_SLOTS 1024
/* As many as the sink of `longwire bench throughput`. */
#define TX_SLOTS 256
#define PAGE 4096
#define IN_FD 1000001
#define OUT_FD 1000002

static struct nmport_d in_port, out_port;
static struct netmap_ring *in_ring, *out_ring;
static uint32_t source_frames, source_next, refilled;
static uint64_t duration;

/* Written by the receiving thread. */
static uint64_t taken __attribute__((aligned(128)));
/* Written by the sending thread. */
static volatile uint64_t sent __attribute__((aligned(128)));
static uint32_t sent_to;
static volatile uint64_t started, sent_at_start, taken_at_start;
static char end_of_line[128] __attribute__((aligned(128), unused));

static uint64_t
setting(const char *name)
{
	const char *text = getenv(name);
	uint64_t value = text ? strtoull(text, NULL, 10) : 0;

	if (value == 0) {
		fprintf(stderr, "rings: set %s\n", name);
		exit(2);
	}
	return value;
}

static uint64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void *
memory(size_t bytes)
{
	void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED) {
		perror("rings: mmap");
		exit(2);
	}
	return area;
}

/* Fills a port with one ring of each kind; both are at the same place, as each port has one use. */
static struct netmap_ring *
port(struct nmport_d *d, int fd, uint32_t slots, uint32_t stride, size_t buffers)
{
	size_t head = sizeof(struct netmap_if) + 4 * sizeof(ssize_t) + sizeof(struct netmap_ring) +
		      slots * sizeof(struct netmap_slot);
	char *area;
	struct netmap_if *interface;
	struct netmap_ring *ring;
	uint32_t i;

	head = (head + 2 * PAGE) / PAGE * PAGE;
	area = memory(head + stride * buffers);
	interface = (struct netmap_if *)area;
	ring = (struct netmap_ring *)(area + PAGE / 4);
	for (i = 0; i < 4; i++)
		*(ssize_t *)&interface->ring_ofs[i] = PAGE / 4;
	*(uint32_t *)&interface->ni_tx_rings = 1;
	*(uint32_t *)&interface->ni_rx_rings = 1;
	*(int64_t *)&ring->buf_ofs = (area + head) - (char *)ring;
	*(uint32_t *)&ring->num_slots = slots;
	*(uint32_t *)&ring->nr_buf_size = stride;
	for (i = 0; i < slots; i++)
		ring->slot[i].buf_idx = i;
	memset(area + head, 0x5a, stride * buffers);
	d->nifp = interface;
	d->fd = fd;
	return ring;
}

struct nmport_d *
__wrap_nmport_prepare(const char *name)
{
	int is_source = strcmp(name, "rings:in") == 0;
	uint32_t size = setting("RINGS_SIZE"), stride = (size + 63) / 64 * 64, i;

	if (is_source && !in_ring) {
		duration = setting("RINGS_NS");
		source_frames = setting("RINGS_SOURCE") / stride;
		if (source_frames < RX_SLOTS)
			source_frames = RX_SLOTS;
		in_ring = port(&in_port, IN_FD, RX_SLOTS, stride, source_frames);
		for (i = 0; i < RX_SLOTS; i++)
			in_ring->slot[i].len = size;
		source_next = RX_SLOTS - 1;
		in_ring->tail = RX_SLOTS - 1;
		refilled = RX_SLOTS - 1;
	} else if (!is_source && !out_ring) {
		out_ring = port(&out_port, OUT_FD, TX_SLOTS, stride, TX_SLOTS);
		out_ring->tail = TX_SLOTS - 1;
	}
	return is_source ? &in_port : &out_port;
}

int
__wrap_nmport_open_desc(struct nmport_d *d)
{
	(void)d;
	return 0;
}

struct nmport_d *
__wrap_nmport_open(const char *name)
{
	return __wrap_nmport_prepare(name);
}

void
__wrap_nmport_close(struct nmport_d *d)
{
	(void)d;
}

static void
finish(uint64_t time)
{
	uint64_t out = sent, into = taken;

	printf("{\"ns\": %llu, \"received\": %llu, \"sent\": %llu, \"in_flight\": %llu}\n",
	       (unsigned long long)(time - started),
	       (unsigned long long)(into - taken_at_start),
	       (unsigned long long)(out - sent_at_start), (unsigned long long)(into - out));
	fflush(stdout);
	_exit(0);
}

/* Counts the frames that were read, and refills their slots. */
static void
receive(void)
{
	uint32_t head = in_ring->head, end = head ? head - 1 : RX_SLOTS - 1;
	uint64_t time = now();

	if (started && time - started >= duration)
		finish(time);
	while (refilled != end) {
		in_ring->slot[refilled].buf_idx = source_next;
		if (++source_next == source_frames)
			source_next = 0;
		if (++refilled == RX_SLOTS)
			refilled = 0;
		taken++;
	}
	in_ring->tail = end;
}

/* Counts the frames that were sent, and frees their slots. */
static void
transmit(void)
{
	uint32_t head = out_ring->head;

	sent += (head + TX_SLOTS - sent_to) % TX_SLOTS;
	sent_to = head;
	out_ring->tail = head ? head - 1 : TX_SLOTS - 1;
	if (!started && sent) {
		sent_at_start = sent;
		taken_at_start = taken;
		started = now();
	}
}

int
__wrap_ioctl(int fd, unsigned long request, void *argument)
{
	(void)argument;
	if (fd == IN_FD && request == NIOCRXSYNC) {
		receive();
	} else if (fd == OUT_FD && request == NIOCTXSYNC) {
		transmit();
	} else if (fd == OUT_FD && request == NIOCRXSYNC) {
		/* No traffic in the other direction: its thread must not take time from the others. */
		for (;;)
			pause();
	}
	return 0;
}
