package main

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The annotations with the number of the event that made a state, and with the time at which it was sent.
const (
	eventAnnotation = "bench/event"
	sentAnnotation  = "bench/sent"
)

// settle is how long a contestant is left alone before its memory is read.
const settle = time.Second

// figures of the process itself, as the kernel has them.
type self struct {
	Resident uint64 `json:"resident"`
	Peak     uint64 `json:"peak"`
	Threads  uint64 `json:"threads"`
}

func status() self {
	text, _ := os.ReadFile("/proc/self/status")
	field := func(name string) uint64 {
		for line := range strings.Lines(string(text)) {
			if rest, found := strings.CutPrefix(line, name); found {
				n, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
				return n
			}
		}
		return 0
	}
	return self{Resident: field("VmRSS:") * 1024, Peak: field("VmHWM:") * 1024, Threads: field("Threads:")}
}

// cpu is the seconds that all threads have used: user and system.
func cpu() float64 {
	text, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	words := strings.Fields(rest)
	var ticks uint64
	for _, word := range words[11:13] {
		n, _ := strconv.ParseUint(word, 10, 64)
		ticks += n
	}
	return float64(ticks) / 100
}

func say(line any) error {
	return json.NewEncoder(os.Stdout).Encode(line)
}

// firstState tells what the way to it has cost.
func firstState(began time.Time) error {
	sync, used := time.Since(began).Seconds(), cpu()
	time.Sleep(settle)
	return say(struct {
		Sync float64 `json:"sync"`
		CPU  float64 `json:"cpu"`
		self
	}{sync, used, status()})
}

// reconciles counts them and how late they are.
type reconciles struct {
	objects, events uint64
	first           atomic.Uint64
	mutex           sync.Mutex
	late            []int64
	all, last       chan struct{}
	ended           sync.Once
}

func reconcilesOf(job job) *reconciles {
	return &reconciles{
		objects: job.objects, events: job.events, late: make([]int64, 0, job.events),
		all: make(chan struct{}), last: make(chan struct{}),
	}
}

// begin: a reconcile of a pod with these annotations begins.
func (r *reconciles) begin(annotations map[string]string) {
	event, _ := strconv.ParseUint(annotations[eventAnnotation], 10, 64)
	if event == 0 {
		if r.first.Add(1) == r.objects {
			close(r.all)
		}
		return
	}
	sent, _ := strconv.ParseInt(annotations[sentAnnotation], 10, 64)
	late := max(time.Now().UnixNano()-sent, 0)
	r.mutex.Lock()
	r.late = append(r.late, late)
	r.mutex.Unlock()
	// A worker may see the last state before its notification comes, which then brings a second reconcile of it.
	if event == r.events {
		r.ended.Do(func() { close(r.last) })
	}
}

// finish waits for every pod's first reconcile and for the last event, and tells what it cost from one to the other.
func (r *reconciles) finish(start time.Time) error {
	<-r.all
	first, firstCPU := time.Since(start).Seconds(), cpu()
	time.Sleep(settle)
	before := cpu()
	os.Stdout.WriteString("ready\n")
	began := time.Now()
	<-r.last
	took := time.Since(began).Seconds()
	time.Sleep(settle)
	used, status := cpu()-before, status()
	r.mutex.Lock()
	late := slices.Sorted(slices.Values(r.late))
	r.mutex.Unlock()
	at := func(part float64) float64 {
		return float64(late[int(float64(len(late)-1)*part)]) / 1e9
	}
	return say(struct {
		First      float64 `json:"first"`
		FirstCPU   float64 `json:"first_cpu"`
		Time       float64 `json:"time"`
		CPU        float64 `json:"cpu"`
		Reconciles int     `json:"reconciles"`
		P50        float64 `json:"p50"`
		P99        float64 `json:"p99"`
		Max        float64 `json:"max"`
		self
	}{first, firstCPU, took, used, len(late), at(0.5), at(0.99), at(1), status})
}
