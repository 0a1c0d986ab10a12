package test

import "strings"

// switches are values with which each template, and each branch of one, is rendered.
var switches = []struct {
	name, values string
	kinds        string // beside those of the default values
}{
	{name: "default values"},
	{name: "names", values: "nameOverride: otter\nfullnameOverride: river\nimagePullSecrets: [{name: pull}]\nimage: {repository: registry.example/lutra, tag: v1.2.0, pullPolicy: Always}"},
	{name: "a digest", values: "image: {tag: 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}"},
	{name: "settings", values: "replicas: 3\nport: 9000\nservice: {port: 80, type: LoadBalancer, annotations: {a: b}}\nrequestTimeoutSeconds: 120\n" +
		"config: {threads: 2, server: {max_body: 16777216, max_memory: 1073741824, strict: true, presets: {bon8: bon8}}, kv: {memory: 1GiB, block: 64}, engine: {prefill_slowdown: 1.25}, log: {level: debug}}"},
	{name: "drain", values: "drain: {preStopSeconds: 0, lameDuckSeconds: 0, timeoutSeconds: 60}\nprobes: {startupSeconds: 61, livenessPath: /readyz}"},
	{name: "keys", values: "apiKeys: {keys: ['alice: a-key-of-some-length', another-key-of-some-length]}", kinds: "Secret"},
	{name: "a secret of keys", values: "apiKeys: {existingSecret: team, secretKey: clients}"},
	{name: "tls", values: "tls: {existingSecret: cert}\nserviceMonitor: {enabled: true}", kinds: "ServiceMonitor"},
	{name: "embedded models", values: "models: [{embedded: lutra-tiny-s, name: small, aliases: [a, b], context: 512}]"},
	{name: "models pulled by each pod", values: pulledModels + "huggingFace: {endpoint: 'https://hub.example', existingSecret: hub}"},
	{name: "models the server downloads", values: pulledModels + "modelCache: {pull: none, size: 100Gi}\nhuggingFace: {existingSecret: hub, secretKey: HF_TOKEN}"},
	{name: "a claim", values: pulledModels + "modelCache: {kind: claim, storageClass: nfs}", kinds: "PersistentVolumeClaim"},
	{name: "a claim of one's own", values: pulledModels + "modelCache: {kind: claim, existingClaim: models}"},
	{name: "a job", values: pulledModels + "modelCache: {kind: claim, existingClaim: models, pull: job}\nimagePullSecrets: [{name: pull}]\nnodeSelector: {disk: ssd}\ntolerations: [{operator: Exists}]", kinds: "Job"},
	{name: "a volume for each replica", values: pulledModels + "modelCache: {kind: perReplica, storageClass: local}\nautoscaling: {enabled: true}", kinds: "StatefulSet Service HorizontalPodAutoscaler"},
	{name: "KV events", values: "kvEvents: {enabled: true}"},
	{name: "KV events to a picker", values: "kvEvents: {enabled: true, connect: 'tcp://picker:5557', replayPort: 0}\nnetworkPolicy: {enabled: true, router: [{podSelector: {matchLabels: {app: picker}}}]}", kinds: "NetworkPolicy"},
	{name: "a headless service", values: "headlessService: {enabled: true}", kinds: "Service"},
	{name: "search workers", values: "searchWorkers: {enabled: true}\nreplicas: 4\nnetworkPolicy: {enabled: true}", kinds: "Service NetworkPolicy"},
	{name: "other search workers", values: "searchWorkers: {enabled: true, addresses: ['dns+http://workers.apps.svc:8080', 'http://10.0.0.7:8080']}", kinds: "Service"},
	{name: "no account", values: "serviceAccount: {create: false, name: other}\npodDisruptionBudget: {enabled: false}"},
	{name: "an account and a budget", values: "serviceAccount: {name: mine, annotations: {a: b}}\npodDisruptionBudget: {maxUnavailable: 25%}"},
	{name: "autoscaling", values: "autoscaling: {enabled: true, minReplicas: 2, maxReplicas: 8}", kinds: "HorizontalPodAutoscaler"},
	{name: "autoscaling on the queue", values: "autoscaling: {enabled: true, kvUsageTarget: '', waitingMetric: lutra_num_requests_waiting}", kinds: "HorizontalPodAutoscaler"},
	{name: "a network policy", values: pulledModels + "networkPolicy: {enabled: true, clients: [{namespaceSelector: {matchLabels: {team: a}}}], router: [{podSelector: {matchLabels: {app: picker}}}], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}\nkvEvents: {enabled: true}", kinds: "NetworkPolicy"},
	{name: "a route", values: "httpRoute: {enabled: true, parentRefs: [{name: gateway, namespace: infra, sectionName: https}], hostnames: [chat.example, '*.chat.example'], annotations: {a: b}}", kinds: "HTTPRoute"},
	{name: "a pool", values: pool, kinds: "InferencePool HTTPRoute"},
	{name: "a monitor", values: "serviceMonitor: {enabled: true, interval: 1m, labels: {release: prometheus}}", kinds: "ServiceMonitor"},
	{name: "a user of the cluster's choice", values: "runAs: null\nresources: null"},
	{name: "scheduling", values: "nodeSelector: {cpu: big}\ntolerations: [{key: cpu, operator: Exists}]\naffinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: arch, operator: In, values: [amd64]}]}]}}}\n" +
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]\npriorityClassName: high\npodLabels: {llm-d.ai/role: decode}\npodAnnotations: {a: b}"},
	{name: "what pods have beside it", values: "extraEnv: [{name: LUTRA_LOG_LEVEL, value: debug}]\nextraVolumes: [{name: mine, persistentVolumeClaim: {claimName: mine}}]\nextraVolumeMounts: [{name: mine, mountPath: /mine, readOnly: true}]\nmodels: [{path: /mine/model.gguf}]"},
	{name: "all together", values: pulledModels + pool + "\nreplicas: 3\nmodelCache: {kind: perReplica}\nnetworkPolicy: {enabled: true, router: [{podSelector: {matchLabels: {app: picker}}}]}\nautoscaling: {enabled: true}\nserviceMonitor: {enabled: true}\n" +
		"apiKeys: {keys: [a-key-of-some-length]}\nhuggingFace: {existingSecret: hub}\nconfig: {server: {count_requests: true}}",
		kinds: "StatefulSet Service InferencePool HTTPRoute NetworkPolicy HorizontalPodAutoscaler ServiceMonitor Secret"},
}

const pulledModels = "models: [{path: bonsai-1.7b}, {path: 'hf:Qwen/Qwen3-4B-GGUF:Q4_K_M', name: qwen, draft: 'hf:Qwen/Qwen3-0.6B-GGUF:Q8_0'}, {path: /models/own.gguf}, {embedded: lutra-tiny-l, draft: lutra-tiny-s}]\n"

const pool = "inferencePool: {enabled: true, endpointPicker: {name: picker}}\nhttpRoute: {enabled: true, parentRefs: [{name: gateway}]}\nkvEvents: {enabled: true}\npodLabels: {llm-d.ai/role: decode}"

// always are the kinds that the default values render; a switch may turn the last two off.
var always = strings.Fields("ConfigMap Pod Service ServiceAccount PodDisruptionBudget")
