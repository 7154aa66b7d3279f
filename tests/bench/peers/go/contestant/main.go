// Package contestant is what the contestants in Go have in common: they do what users of client-go and of controller-runtime
// would write for the same work, tuned as an expert would.
//
// The lines that they read and write are those of `src/contestant.rs` of the benchmarks.
package contestant

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Work of a contestant.
type Work func(ctx context.Context, config *rest.Config, job Job, meter Meter) error

// Main does the job of the command line by what goes by this name.
func Main(name string, work Work) {
	if err := run(name, work, Start(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(name string, work Work, meter Meter, args []string) error {
	job, err := jobOf(args)
	if err != nil {
		return err
	}
	if job.Variant != name {
		return fmt.Errorf("this is not %s", job.Variant)
	}
	// Whether a first list streams is a feature gate of client-go, which is read when it is first asked for.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(job.Streaming)); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", job.Kubeconfig)
	if err != nil {
		return err
	}
	tune(config, job)
	return work(context.Background(), config, job, meter)
}

// tune: protobuf where the server has it, and no rate limit of the client's own.
func tune(config *rest.Config, job Job) {
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	if job.Protobuf && !job.Metadata {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	config.QPS = -1
}
