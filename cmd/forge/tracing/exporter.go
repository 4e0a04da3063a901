package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"forge/pipeline"
)

const (
	maxQueue   = 8192            // spans that wait for the collector; more are dropped
	followWait = time.Second     // how long events gather before the log is read
	logEvery   = time.Minute     //
	flushTime  = 3 * time.Second // for what is left at the end
)

// Enabled reports whether the environment asks for traces: OTEL_SDK_DISABLED is
// not true, OTEL_TRACES_EXPORTER is not none, and there is an endpoint.
func Enabled(getenv func(string) string) bool {
	if getenv("OTEL_SDK_DISABLED") == "true" || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// Options configure an exporter. Events is needed; the rest has defaults.
type Options struct {
	Events   func(ctx context.Context, run, after int64) ([]pipeline.Event, error) // a run's log, after an event
	Version  string                                                                // of the service
	Log      *slog.Logger                                                          // nil: none
	Now      func() time.Time                                                      // nil: time.Now
	Exporter sdk.SpanExporter                                                      // nil: OTLP over HTTP, as the environment says
	Queue    int                                                                   // spans that wait for the collector; 0: 8192
}

// Stats count spans since the start.
type Stats struct {
	Exported int64 // the collector has taken
	Failed   int64 // the collector could not be reached, or refused
	Dropped  int64 // the queue was full
}

// Exporter exports the spans of runs that move. It reads them from the log, in a
// goroutine of its own: who appends an event waits for nothing. A nil exporter
// does nothing.
type Exporter struct {
	opts     Options
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue

	wake  chan struct{}
	quit  chan struct{}
	ended chan struct{}

	closing sync.Once
	runs    follower

	mu    sync.Mutex
	moved map[int64]int64 // runs to look at: the first event that this process has appended since the last look
}

// New starts an exporter. It makes no connection yet.
func New(ctx context.Context, o Options) (*Exporter, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Queue <= 0 {
		o.Queue = maxQueue
	}
	if o.Exporter == nil {
		c, err := newClient(os.Getenv)
		if err != nil {
			return nil, fmt.Errorf("export traces: %w", err)
		}
		x, err := otlptrace.New(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("export traces: %w", err)
		}
		o.Exporter = x
	}
	// Later ones win: what the environment says is what operators want.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("forge"), semconv.ServiceVersion(o.Version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("describe this service for traces (OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	x := &Exporter{opts: o, queue: &queue{next: o.Exporter, max: int64(o.Queue), log: o.Log, now: o.Now},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}), moved: map[int64]int64{}}
	x.runs = follower{events: o.Events, emit: x.emit, folds: map[int64]*followed{}}
	x.queue.SpanProcessor = sdk.NewBatchSpanProcessor(x.queue.exporter(), sdk.WithMaxQueueSize(o.Queue))
	x.provider = sdk.NewTracerProvider(sdk.WithResource(res), sdk.WithIDGenerator(ids{}), sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(x.queue))
	x.tracer = x.provider.Tracer("forge", trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(semconv.SchemaURL))
	go x.follow(context.WithoutCancel(ctx)) // Close ends it
	return x, nil
}

// OnEvents notes that a run has gone on. It never blocks and keeps nothing of the
// events.
func (x *Exporter) OnEvents(run int64, events []pipeline.Event) {
	if x == nil || len(events) == 0 {
		return
	}
	x.mu.Lock()
	if first, ok := x.moved[run]; !ok || events[0].Seq < first {
		x.moved[run] = events[0].Seq
	}
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Stats counts what became of the spans.
func (x *Exporter) Stats() Stats {
	if x == nil {
		return Stats{}
	}
	return Stats{Exported: x.queue.exported.Load(), Failed: x.queue.failed.Load(), Dropped: x.queue.dropped.Load()}
}

// Close exports what is left, for a few seconds at most; what then remains is
// lost, which the log tells. The runs' events must still be readable.
func (x *Exporter) Close(ctx context.Context) {
	if x == nil {
		return
	}
	x.closing.Do(func() {
		close(x.quit)
		<-x.ended
		ctx, cancel := context.WithTimeout(ctx, flushTime)
		defer cancel()
		if err := x.provider.Shutdown(ctx); err != nil {
			x.opts.Log.Warn("export the last traces", "error", err)
		}
	})
}

// follow reads the log of runs that have moved, until Close.
func (x *Exporter) follow(ctx context.Context) {
	defer close(x.ended)
	for {
		select {
		case <-x.wake:
		case <-x.quit:
			ctx, cancel := context.WithTimeout(ctx, flushTime)
			defer cancel()
			x.look(ctx)
			return
		}
		x.look(ctx)
		select { // events come in bursts
		case <-time.After(followWait):
		case <-x.quit:
		}
	}
}

func (x *Exporter) look(ctx context.Context) {
	x.mu.Lock()
	moved := x.moved
	x.moved = map[int64]int64{}
	x.mu.Unlock()
	for run, first := range moved {
		if err := x.runs.catchUp(ctx, run, first); err != nil {
			x.opts.Log.Warn("read a run for its trace", "run", run, "error", err)
		}
	}
}

// emit makes an SDK span of a finished one. Its ids and its times are its own.
func (x *Exporter) emit(s Span) {
	ctx := context.WithValue(context.Background(), ids{}, s)
	if s.Parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx,
			trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.Trace, SpanID: s.Parent, TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	opts := []trace.SpanStartOption{trace.WithTimestamp(s.Start), trace.WithSpanKind(s.Kind), trace.WithAttributes(s.Attributes...)}
	if s.Link.IsValid() {
		to := trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.Trace, SpanID: s.Link, TraceFlags: trace.FlagsSampled})
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("forge.link", "run")}}))
	}
	_, span := x.tracer.Start(ctx, s.Name, opts...)
	for _, m := range s.Marks {
		span.AddEvent(m.Name, trace.WithTimestamp(m.At), trace.WithAttributes(m.Attributes...))
	}
	if s.Failed {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(s.End))
}

// ids gives spans the ids that were derived for them. It is its own key for the
// span in a context.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s, _ := ctx.Value(ids{}).(Span)
	return s.Trace, s.ID
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s, _ := ctx.Value(ids{}).(Span)
	return s.ID
}

// queue bounds and counts what waits in the batch processor, which would drop in
// silence.
type queue struct {
	sdk.SpanProcessor
	next sdk.SpanExporter
	max  int64
	log  *slog.Logger
	now  func() time.Time

	waiting, exported, failed, dropped atomic.Int64

	mu    sync.Mutex
	said  time.Time // the last time that losses were logged
	upTo  int64     // how many had been lost then
	cause error
}

// OnEnd implements sdk.SpanProcessor. It never blocks.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.waiting.Add(1) > q.max {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		q.complain()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

func (q *queue) exporter() sdk.SpanExporter { return counting{q} }

// counting tells the queue what the exporter does with spans.
type counting struct{ q *queue }

// ExportSpans implements sdk.SpanExporter. Its errors are counted and logged here:
// the SDK would send them to a global handler.
func (c counting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	q := c.q
	err := q.next.ExportSpans(ctx, spans)
	n := int64(len(spans))
	q.waiting.Add(-n)
	if err == nil {
		q.exported.Add(n)
		return nil
	}
	q.mu.Lock()
	q.cause = err
	q.mu.Unlock()
	q.failed.Add(n)
	q.complain()
	return nil
}

func (c counting) Shutdown(ctx context.Context) error { return c.q.next.Shutdown(ctx) }

// complain logs that spans are lost, at most once a minute.
func (q *queue) complain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost, now := q.failed.Load()+q.dropped.Load(), q.now()
	if !q.said.IsZero() && now.Sub(q.said) < logEvery {
		return
	}
	q.log.Warn("traces are lost: the collector does not take them; runs go on without", "spans", lost-q.upTo, "error", q.cause)
	q.said, q.upTo = now, lost
}
