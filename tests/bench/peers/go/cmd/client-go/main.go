// client-go as a contestant: a shared informer, a queue and one worker.
package main

import (
	"contestants/contestant"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	contestant.Main("client-go", informer)
}

// informer is what is written with client-go alone: a shared informer, a queue and one worker.
func informer(ctx context.Context, config *rest.Config, job contestant.Job, meter contestant.Meter) error {
	shared, err := sharedInformer(config, job)
	if err != nil {
		return err
	}
	if err := shared.SetTransform(dropManagedFields); err != nil {
		return err
	}
	if !job.Watch {
		go shared.RunWithContext(ctx)
		for !shared.HasSynced() {
			time.Sleep(2 * time.Millisecond)
		}
		return meter.FirstState(job)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	if _, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	}); err != nil {
		return err
	}
	reconciles := contestant.ReconcilesOf(job)
	go shared.RunWithContext(ctx)
	go func() {
		for {
			key, shutdown := queue.Get()
			if shutdown {
				return
			}
			if obj, exists, err := shared.GetIndexer().GetByKey(key); err == nil && exists {
				reconciles.Begin(obj.(metav1.Object).GetAnnotations())
			}
			queue.Forget(key)
			if job.Requeue {
				queue.AddAfter(key, time.Hour)
			}
			queue.Done(key)
		}
	}()
	return reconciles.Finish(meter)
}

// sharedInformer of the job's objects. Page sizes are the reflector's own: 500, which is what is asked for unless it is one
// response.
func sharedInformer(config *rest.Config, job contestant.Job) (cache.SharedIndexInformer, error) {
	if job.PageSize != 500 {
		return nil, errors.New("--page-size: an informer's is 500")
	}
	if job.Metadata {
		resource := corev1.SchemeGroupVersion.WithResource("pods")
		if job.ConfigMaps {
			resource = corev1.SchemeGroupVersion.WithResource("configmaps")
		}
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, job.Namespace, nil)
		return factory.ForResource(resource).Informer(), nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(job.Namespace)).Core().V1()
	if job.ConfigMaps {
		return core.ConfigMaps().Informer(), nil
	}
	return core.Pods().Informer(), nil
}

// dropManagedFields before an object is stored.
func dropManagedFields(obj any) (any, error) {
	if object, is := obj.(metav1.Object); is {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
