// controller-runtime as a contestant: a manager with one controller.
package main

import (
	"contestants/contestant"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	contestant.Main("controller-runtime", manager)
}

// manager is what is written with controller-runtime: a manager with controllers of one kind, which share its cache.
func manager(ctx context.Context, config *rest.Config, job contestant.Job, meter contestant.Meter) error {
	if job.PageSize != 500 {
		return errors.New("--page-size: an informer's is 500")
	}
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if job.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{job.Namespace: {}}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         scheme,
		MapperProvider: staticMapper,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Cache:          options,
	})
	if err != nil {
		return err
	}
	var kind client.Object = &corev1.Pod{}
	if job.ConfigMaps {
		kind = &corev1.ConfigMap{}
	}
	kept, how := kind, []builder.ForOption{}
	if job.Metadata {
		partial := &metav1.PartialObjectMetadata{}
		name := "Pod"
		if job.ConfigMaps {
			name = "ConfigMap"
		}
		partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(name))
		kept, how = partial, append(how, builder.OnlyMetadata)
	}
	if !job.Watch {
		nothing := predicate.NewPredicateFuncs(func(client.Object) bool { return false })
		how = append(how, builder.WithPredicates(nothing))
	}
	reconciles := contestant.ReconcilesOf(job)
	look := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		object := kept.DeepCopyObject().(client.Object)
		if err := manager.GetClient().Get(ctx, request.NamespacedName, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		reconciles.Begin(object.GetAnnotations())
		if job.Requeue {
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}
		return reconcile.Result{}, nil
	}
	for n := range job.Controllers {
		how := how
		if job.Controllers > 1 {
			mine := predicate.NewPredicateFuncs(func(object client.Object) bool { return shard(object, job) == n })
			how = append(slices.Clone(how), builder.WithPredicates(mine))
		}
		if err := builder.ControllerManagedBy(manager).
			Named(fmt.Sprint("objects-", n)).
			For(kind, how...).
			Complete(reconcile.Func(look)); err != nil {
			return err
		}
	}
	// An informer that is there before the cache starts is one that its start waits for.
	if _, err := manager.GetCache().GetInformer(ctx, kept); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- manager.Start(ctx) }()
	done := make(chan error, 1)
	go func() {
		if job.Watch {
			done <- reconciles.Finish(meter)
		} else if manager.GetCache().WaitForCacheSync(ctx) {
			done <- meter.FirstState(job)
		}
	}()
	select {
	case err := <-failed:
		return err
	case err := <-done:
		return err
	}
}

// shard is the number of the controller that has this object.
func shard(object client.Object, job contestant.Job) uint64 {
	digits, err := strconv.ParseUint(string(object.GetUID())[:8], 16, 64)
	if err != nil {
		return 0
	}
	return digits % job.Controllers
}

// staticMapper knows both kinds and asks the server for nothing.
func staticMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	version := corev1.SchemeGroupVersion
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	mapper.Add(version.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(version.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper, nil
}
