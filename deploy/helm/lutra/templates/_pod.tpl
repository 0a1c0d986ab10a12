{{- /* The restricted profile of Pod Security. */ -}}
{{- define "lutra.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAs }}
runAsUser: {{ .user | int }}
runAsGroup: {{ .group | int }}
fsGroup: {{ .group | int }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "lutra.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "lutra.huggingFaceEnv" -}}
{{- with .Values.huggingFace.endpoint }}
- name: HF_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.huggingFace.existingSecret }}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.huggingFace.secretKey }}
{{- end }}
{{- end -}}

{{- /* A container for each model that has to come, of the dictionary's root, with its resources. */ -}}
{{- define "lutra.pullContainers" -}}
{{- $resources := .resources -}}
{{- with .root -}}
{{- range $i, $model := include "lutra.pulls" . | fromJsonArray }}
- name: pull-{{ $i }}
  image: {{ include "lutra.image" $.root }}
  imagePullPolicy: {{ $.root.Values.image.pullPolicy }}
  args: [pull, {{ $model | quote }}]
  {{- with include "lutra.huggingFaceEnv" $.root | trim }}
  env:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with $resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "lutra.containerSecurity" $.root | nindent 4 }}
  volumeMounts:
    - name: models
      mountPath: /models
{{- end }}
{{- end }}
{{- end -}}

{{- define "lutra.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ include "lutra.scheme" .root | upper }}
timeoutSeconds: 5
{{- end -}}

{{- define "lutra.podTemplate" -}}
{{- $v := .Values -}}
{{- $pulled := include "lutra.pulls" . | fromJsonArray -}}
{{- $fetches := and $pulled (eq $v.modelCache.pull "none") -}}
metadata:
  labels:
    {{- include "lutra.selector" . | nindent 4 }}
    app.kubernetes.io/version: {{ include "lutra.version" . }}
    {{- with $v.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "lutra.config" . | sha256sum }}
    {{- with $v.apiKeys.keys }}
    checksum/keys: {{ toJson . | sha256sum }}
    {{- end }}
    {{- with $v.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "lutra.serviceAccount" . }}
  automountServiceAccountToken: false
  # A Service called lutra would put LUTRA_PORT and the like among the server's settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "lutra.graceSeconds" . }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "lutra.podSecurity" . | nindent 4 }}
  {{- if and $pulled (eq $v.modelCache.pull "init") }}
  initContainers:
    {{- /* The server's resources: with others the pod would not be of the class Guaranteed. */}}
    {{- include "lutra.pullContainers" (dict "root" . "resources" $v.resources) | trim | nindent 4 }}
  {{- end }}
  containers:
    - name: lutra
      image: {{ include "lutra.image" . }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args: [serve, --config, /etc/lutra/config.yaml{{ if not $fetches }}, --offline{{ end }}]
      env:
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        # The image's own value would override config.yaml.
        - name: LUTRA_SERVER_ADDR
          value: ":{{ int $v.port }}"
        {{- if $fetches }}
        {{- with include "lutra.huggingFaceEnv" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- end }}
        {{- with $v.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: {{ int $v.port }}
        {{- if $v.kvEvents.enabled }}
        {{- if not $v.kvEvents.connect }}
        - name: kv-events
          containerPort: {{ int $v.kvEvents.port }}
        {{- end }}
        {{- if $v.kvEvents.replayPort }}
        - name: kv-replay
          containerPort: {{ int $v.kvEvents.replayPort }}
        {{- end }}
        {{- end }}
      startupProbe:
        {{- include "lutra.probe" (dict "path" "/readyz" "root" .) | nindent 8 }}
        periodSeconds: 5
        failureThreshold: {{ divf $v.probes.startupSeconds 5 | ceil | int }}
      readinessProbe:
        {{- include "lutra.probe" (dict "path" "/readyz" "root" .) | nindent 8 }}
        periodSeconds: 5
        failureThreshold: 2
      livenessProbe:
        {{- include "lutra.probe" (dict "path" $v.probes.livenessPath "root" .) | nindent 8 }}
        periodSeconds: 10
        failureThreshold: 6
      {{- if $v.drain.preStopSeconds }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ int $v.drain.preStopSeconds }}
      {{- end }}
      {{- with $v.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "lutra.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/lutra/config.yaml
          subPath: config.yaml
          readOnly: true
        {{- if include "lutra.keysSecret" . }}
        - name: keys
          mountPath: /etc/lutra/keys
          readOnly: true
        {{- end }}
        {{- if $v.tls.existingSecret }}
        - name: tls
          mountPath: /etc/lutra/tls
          readOnly: true
        {{- end }}
        - name: models
          mountPath: /models
          {{- if not $fetches }}
          readOnly: true
          {{- end }}
        {{- with $v.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- with $v.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- if $v.topologySpreadConstraints }}
    {{- toYaml $v.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "lutra.selector" . | nindent 10 }}
    {{- end }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "lutra.fullname" . }}
    {{- with include "lutra.keysSecret" . }}
    - name: keys
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with $v.tls.existingSecret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- if eq $v.modelCache.kind "emptyDir" }}
    - name: models
      emptyDir:
        sizeLimit: {{ $v.modelCache.size }}
    {{- else if eq $v.modelCache.kind "claim" }}
    - name: models
      persistentVolumeClaim:
        claimName: {{ $v.modelCache.existingClaim | default (printf "%s-models" (include "lutra.fullname" .)) }}
    {{- end }}
    {{- with $v.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
