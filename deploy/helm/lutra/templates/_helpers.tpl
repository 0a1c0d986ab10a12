{{- define "lutra.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* Leaves room in 63 characters for what StatefulSets and this chart append. */ -}}
{{- define "lutra.fullname" -}}
{{- $name := include "lutra.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "lutra.headless" -}}{{ include "lutra.fullname" . }}-pods{{- end -}}

{{- /* What objects of all kinds and pods of all kinds share. */ -}}
{{- define "lutra.commonSelector" -}}
app.kubernetes.io/name: {{ include "lutra.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The image's tag as a label, which takes no colon. */ -}}
{{- define "lutra.version" -}}
{{ .Values.image.tag | default .Chart.AppVersion | replace ":" "-" | trunc 63 | trimAll "-_." | quote }}
{{- end -}}

{{- define "lutra.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ include "lutra.version" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "lutra.commonSelector" . }}
{{- end -}}

{{- /* The pods that serve. Those that only download, and the test's, have another component. */ -}}
{{- define "lutra.selector" -}}
{{ include "lutra.commonSelector" . }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "lutra.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if hasPrefix "sha256:" $tag -}}
{{ .Values.image.repository }}@{{ $tag }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
{{- end -}}

{{- define "lutra.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "lutra.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "lutra.scheme" -}}{{ ternary "https" "http" (ne .Values.tls.existingSecret "") }}{{- end -}}

{{- define "lutra.headlessWanted" -}}
{{- if or .Values.headlessService.enabled .Values.searchWorkers.enabled (eq .Values.modelCache.kind "perReplica") -}}true{{- end -}}
{{- end -}}

{{- define "lutra.keysSecret" -}}
{{- if .Values.apiKeys.existingSecret -}}
{{ .Values.apiKeys.existingSecret }}
{{- else if .Values.apiKeys.keys -}}
{{ include "lutra.fullname" . }}-keys
{{- end -}}
{{- end -}}

{{- define "lutra.drainSeconds" -}}
{{- if .Values.drain.timeoutSeconds -}}{{ .Values.drain.timeoutSeconds | int }}{{- else -}}{{ .Values.requestTimeoutSeconds | int }}{{- end -}}
{{- end -}}

{{- /* Until a process is killed: what the pod waits before SIGTERM, what the server waits
       after it, and the seconds that cancelled requests have to say so. */ -}}
{{- define "lutra.graceSeconds" -}}
{{- add (int .Values.drain.preStopSeconds) (int (include "lutra.drainSeconds" .)) 5 -}}
{{- end -}}

{{- /* The models to download, as a JSON list: of all that the configuration names, those
       that are neither files nor inside the binary. */ -}}
{{- define "lutra.pulls" -}}
{{- $named := list -}}
{{- range .Values.models -}}
{{- $named = append (append $named .path) .draft -}}
{{- end -}}
{{- range .Values.config.verifiers -}}
{{- $named = append $named .path -}}
{{- end -}}
{{- $named = append $named (dig "engine" "draft_model" "" .Values.config) -}}
{{- $pulls := list -}}
{{- range compact $named | uniq -}}
{{- if not (or (hasPrefix "/" .) (hasPrefix "lutra-tiny-" .) (eq "none" .)) -}}
{{- $pulls = append $pulls . -}}
{{- end -}}
{{- end -}}
{{- toJson $pulls -}}
{{- end -}}

{{- /* What values must not say together; the schema sees each alone. */ -}}
{{- define "lutra.check" -}}
{{- $v := .Values -}}
{{- if and (eq $v.modelCache.pull "job") (not $v.modelCache.existingClaim) -}}
{{- fail "modelCache.pull: a job wants modelCache.existingClaim: it runs before the chart's own claim is there" -}}
{{- end -}}
{{- if and $v.modelCache.existingClaim (ne $v.modelCache.kind "claim") -}}
{{- fail "modelCache.existingClaim: is for modelCache.kind claim" -}}
{{- end -}}
{{- if and $v.apiKeys.keys $v.apiKeys.existingSecret -}}
{{- fail "apiKeys: set either keys or existingSecret" -}}
{{- end -}}
{{- if gt (int $v.drain.lameDuckSeconds) (int (include "lutra.drainSeconds" .)) -}}
{{- fail "drain.lameDuckSeconds: is part of drain.timeoutSeconds, and longer" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas: is more than maxReplicas" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (not $v.autoscaling.waitingTarget) (not $v.autoscaling.kvUsageTarget) -}}
{{- fail "autoscaling: needs waitingTarget or kvUsageTarget" -}}
{{- end -}}
{{- if and $v.inferencePool.enabled (not $v.inferencePool.endpointPicker.name) -}}
{{- fail "inferencePool.endpointPicker.name: name the picker's Service" -}}
{{- end -}}
{{- if and $v.inferencePool.enabled $v.tls.existingSecret -}}
{{- fail "inferencePool: a picker reads metrics by plain http; leave tls to the Gateway" -}}
{{- end -}}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name the Gateway" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.kvEvents.enabled (not $v.networkPolicy.router) -}}
{{- fail "networkPolicy.router: say who reads the KV events" -}}
{{- end -}}
{{- $ports := list (int $v.port) -}}
{{- if $v.kvEvents.enabled -}}
{{- if not $v.kvEvents.connect -}}{{- $ports = append $ports (int $v.kvEvents.port) -}}{{- end -}}
{{- if $v.kvEvents.replayPort -}}{{- $ports = append $ports (int $v.kvEvents.replayPort) -}}{{- end -}}
{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail "port, kvEvents.port and kvEvents.replayPort: must differ" -}}
{{- end -}}
{{- end -}}
