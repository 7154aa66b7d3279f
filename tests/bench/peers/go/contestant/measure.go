package contestant

import (
	"bufio"
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

// atRest: it needs less CPU than this, in seconds, while it settles.
const atRest = 0.05

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

// Meter measures the way from the start.
type Meter struct{ began time.Time }

// Start of what is measured.
func Start() Meter { return Meter{time.Now()} }

func say(line any) error {
	return json.NewEncoder(os.Stdout).Encode(line)
}

// FirstState tells what the way to it has cost.
func (m Meter) FirstState(job Job) error {
	sync, used := time.Since(m.began).Seconds(), cpu()
	time.Sleep(settle)
	err := say(struct {
		Main int64   `json:"main"`
		Sync float64 `json:"sync"`
		CPU  float64 `json:"cpu"`
		self
	}{m.began.UnixNano(), sync, used, status()})
	if err != nil || !job.Spike {
		return err
	}
	return answer()
}

// answer tells what is held, and the most that was since the last time, for each line of standard input.
func answer() error {
	lines := bufio.NewScanner(os.Stdin)
	for {
		// The high-water mark of the resident set begins anew.
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
			return err
		}
		if !lines.Scan() {
			return lines.Err()
		}
		err := say(struct {
			CPU float64 `json:"cpu"`
			self
		}{cpu(), status()})
		if err != nil {
			return err
		}
	}
}

// Reconciles counts them and how late they are.
type Reconciles struct {
	objects, before, last uint64
	several               bool
	first                 atomic.Uint64
	mutex                 sync.Mutex
	late                  []int64
	all, ended            chan struct{}
	end                   sync.Once
}

// ReconcilesOf a job.
func ReconcilesOf(job Job) *Reconciles {
	return &Reconciles{
		objects: job.Objects, before: job.Before, last: job.Before + job.Events, several: job.Controllers > 1,
		late: make([]int64, 0, job.Events),
		all:  make(chan struct{}), ended: make(chan struct{}),
	}
}

// Begin: a reconcile of an object with these annotations begins.
func (r *Reconciles) Begin(annotations map[string]string) {
	event, _ := strconv.ParseUint(annotations[eventAnnotation], 10, 64)
	if event <= r.before {
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
	if event == r.last {
		r.end.Do(func() { close(r.ended) })
	}
}

// Finish waits for every object's first reconcile and for the last event, and tells what it cost from one to the other.
func (r *Reconciles) Finish(meter Meter) error {
	<-r.all
	first, firstCPU := time.Since(meter.began).Seconds(), cpu()
	time.Sleep(settle)
	before := cpu()
	os.Stdout.WriteString("ready\n")
	began := time.Now()
	<-r.ended
	took := time.Since(began).Seconds()
	used := cpu()
	time.Sleep(settle)
	for r.several && cpu()-used > atRest {
		used = cpu()
		time.Sleep(settle)
	}
	used = cpu() - before
	status := status()
	r.mutex.Lock()
	late := slices.Sorted(slices.Values(r.late))
	// What a process had at hand before it rested is cold in the first of them.
	later := slices.Sorted(slices.Values(r.late[len(r.late)/10:]))
	r.mutex.Unlock()
	at := func(late []int64, part float64) float64 {
		return float64(late[int(float64(len(late)-1)*part)]) / 1e9
	}
	return say(struct {
		Main       int64   `json:"main"`
		First      float64 `json:"first"`
		FirstCPU   float64 `json:"first_cpu"`
		Time       float64 `json:"time"`
		CPU        float64 `json:"cpu"`
		Reconciles int     `json:"reconciles"`
		P50        float64 `json:"p50"`
		P99        float64 `json:"p99"`
		LaterP99   float64 `json:"later_p99"`
		Max        float64 `json:"max"`
		self
	}{meter.began.UnixNano(), first, firstCPU, took, used, len(late), at(late, 0.5), at(late, 0.99),
		at(later, 0.99), at(late, 1), status})
}
