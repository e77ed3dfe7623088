"""The messages of CRI v1 (package runtime.v1) that lastcall sends and reads, as field numbers.

The numbers are those of the published k8s.io/cri-api pkg/apis/runtime/v1/api.proto of Kubernetes 1.36. Calls that
lastcall does not make, and what is for Windows, are left out.
"""

ENUMS = """
Protocol: TCP UDP SCTP
MountPropagation: PROPAGATION_PRIVATE PROPAGATION_HOST_TO_CONTAINER PROPAGATION_BIDIRECTIONAL
NamespaceMode: POD CONTAINER NODE TARGET
SupplementalGroupsPolicy: Merge Strict
ProfileType: RuntimeDefault Unconfined Localhost
PodSandboxState: SANDBOX_READY SANDBOX_NOTREADY
ContainerState: CONTAINER_CREATED CONTAINER_RUNNING CONTAINER_EXITED CONTAINER_UNKNOWN
ContainerEventType: CONTAINER_CREATED_EVENT CONTAINER_STARTED_EVENT CONTAINER_STOPPED_EVENT CONTAINER_DELETED_EVENT
Signal: RUNTIME_DEFAULT SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD
    SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL
    SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT
    SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU
    SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ
    SIGRTMIN SIGRTMINPLUS1 SIGRTMINPLUS2 SIGRTMINPLUS3 SIGRTMINPLUS4
    SIGRTMINPLUS5 SIGRTMINPLUS6 SIGRTMINPLUS7 SIGRTMINPLUS8 SIGRTMINPLUS9
    SIGRTMINPLUS10 SIGRTMINPLUS11 SIGRTMINPLUS12 SIGRTMINPLUS13 SIGRTMINPLUS14
    SIGRTMINPLUS15 SIGRTMAXMINUS14 SIGRTMAXMINUS13 SIGRTMAXMINUS12
    SIGRTMAXMINUS11 SIGRTMAXMINUS10 SIGRTMAXMINUS9 SIGRTMAXMINUS8 SIGRTMAXMINUS7
    SIGRTMAXMINUS6 SIGRTMAXMINUS5 SIGRTMAXMINUS4 SIGRTMAXMINUS3 SIGRTMAXMINUS2
    SIGRTMAXMINUS1 SIGRTMAX
"""
"""Enum, then its values from 0 on. `ProfileType` is SecurityProfile's own in the published file: the same bytes."""

SANDBOXES_AND_CONTAINERS = """
VersionRequest: version=1
VersionResponse: version=1 runtime_name=2 runtime_version=3 runtime_api_version=4
DNSConfig: servers=1*string searches=2*string options=3*string
PortMapping: protocol=1:Protocol container_port=2:int32 host_port=3:int32 host_ip=4
Mount: container_path=1 host_path=2 readonly=3:bool selinux_relabel=4:bool propagation=5:MountPropagation
    uidMappings=6*IDMapping gidMappings=7*IDMapping recursive_read_only=8:bool image=9:ImageSpec image_sub_path=10
IDMapping: host_id=1:uint32 container_id=2:uint32 length=3:uint32
UserNamespace: mode=1:NamespaceMode uids=2*IDMapping gids=3*IDMapping
NamespaceOption: network=1:NamespaceMode pid=2:NamespaceMode ipc=3:NamespaceMode target_id=4
    userns_options=5:UserNamespace
Int64Value: value=1:int64
LinuxSandboxSecurityContext: namespace_options=1:NamespaceOption selinux_options=2:SELinuxOption
    run_as_user=3:Int64Value run_as_group=8:Int64Value readonly_rootfs=4:bool supplemental_groups=5*int64
    supplemental_groups_policy=11:SupplementalGroupsPolicy privileged=6:bool seccomp=9:SecurityProfile
    apparmor=10:SecurityProfile seccomp_profile_path=7
SecurityProfile: profile_type=1:ProfileType localhost_ref=2
LinuxPodSandboxConfig: cgroup_parent=1 security_context=2:LinuxSandboxSecurityContext sysctls=3:map
    overhead=4:LinuxContainerResources resources=5:LinuxContainerResources
PodSandboxMetadata: name=1 uid=2 namespace=3 attempt=4:uint32
PodSandboxConfig: metadata=1:PodSandboxMetadata hostname=2 log_directory=3 dns_config=4:DNSConfig
    port_mappings=5*PortMapping labels=6:map annotations=7:map linux=8:LinuxPodSandboxConfig
RunPodSandboxRequest: config=1:PodSandboxConfig runtime_handler=2
RunPodSandboxResponse: pod_sandbox_id=1
StopPodSandboxRequest: pod_sandbox_id=1
StopPodSandboxResponse:
RemovePodSandboxRequest: pod_sandbox_id=1
RemovePodSandboxResponse:
PodSandboxStatusRequest: pod_sandbox_id=1 verbose=2:bool
PodIP: ip=1
PodSandboxNetworkStatus: ip=1 additional_ips=2*PodIP
Namespace: options=2:NamespaceOption
LinuxPodSandboxStatus: namespaces=1:Namespace
PodSandboxStatus: id=1 metadata=2:PodSandboxMetadata state=3:PodSandboxState created_at=4:int64
    network=5:PodSandboxNetworkStatus linux=6:LinuxPodSandboxStatus labels=7:map annotations=8:map runtime_handler=9
PodSandboxStatusResponse: status=1:PodSandboxStatus info=2:map containers_statuses=3*ContainerStatus
    timestamp=4:int64
PodSandboxStateValue: state=1:PodSandboxState
PodSandboxFilter: id=1 state=2:PodSandboxStateValue label_selector=3:map
ListPodSandboxRequest: filter=1:PodSandboxFilter
PodSandbox: id=1 metadata=2:PodSandboxMetadata state=3:PodSandboxState created_at=4:int64 labels=5:map
    annotations=6:map runtime_handler=7
ListPodSandboxResponse: items=1*PodSandbox
KeyValue: key=1 value=2:bytes
LinuxContainerResources: cpu_period=1:int64 cpu_quota=2:int64 cpu_shares=3:int64 memory_limit_in_bytes=4:int64
    oom_score_adj=5:int64 cpuset_cpus=6 cpuset_mems=7 hugepage_limits=8*HugepageLimit unified=9:map
    memory_swap_limit_in_bytes=10:int64
HugepageLimit: page_size=1 limit=2:uint64
SELinuxOption: user=1 role=2 type=3 level=4
Capability: add_capabilities=1*string drop_capabilities=2*string add_ambient_capabilities=3*string
LinuxContainerSecurityContext: capabilities=1:Capability privileged=2:bool namespace_options=3:NamespaceOption
    selinux_options=4:SELinuxOption run_as_user=5:Int64Value run_as_group=12:Int64Value run_as_username=6
    readonly_rootfs=7:bool supplemental_groups=8*int64 supplemental_groups_policy=17:SupplementalGroupsPolicy
    no_new_privs=11:bool masked_paths=13*string readonly_paths=14*string seccomp=15:SecurityProfile
    apparmor=16:SecurityProfile apparmor_profile=9 seccomp_profile_path=10
LinuxContainerConfig: resources=1:LinuxContainerResources security_context=2:LinuxContainerSecurityContext
LinuxContainerUser: uid=1:int64 gid=2:int64 supplemental_groups=3*int64
ContainerMetadata: name=1 attempt=2:uint32
Device: container_path=1 host_path=2 permissions=3
CDIDevice: name=1
ContainerConfig: metadata=1:ContainerMetadata image=2:ImageSpec command=3*string args=4*string working_dir=5
    envs=6*KeyValue mounts=7*Mount devices=8*Device labels=9:map annotations=10:map log_path=11 stdin=12:bool
    stdin_once=13:bool tty=14:bool linux=15:LinuxContainerConfig CDI_devices=17*CDIDevice stop_signal=18:Signal
CreateContainerRequest: pod_sandbox_id=1 config=2:ContainerConfig sandbox_config=3:PodSandboxConfig
CreateContainerResponse: container_id=1
StartContainerRequest: container_id=1
StartContainerResponse:
StopContainerRequest: container_id=1 timeout=2:int64
StopContainerResponse:
RemoveContainerRequest: container_id=1
RemoveContainerResponse:
ContainerStateValue: state=1:ContainerState
ContainerFilter: id=1 state=2:ContainerStateValue pod_sandbox_id=3 label_selector=4:map
ListContainersRequest: filter=1:ContainerFilter
Container: id=1 pod_sandbox_id=2 metadata=3:ContainerMetadata image=4:ImageSpec image_ref=5 state=6:ContainerState
    created_at=7:int64 labels=8:map annotations=9:map image_id=10
ListContainersResponse: containers=1*Container
ContainerStatusRequest: container_id=1 verbose=2:bool
ContainerStatus: id=1 metadata=2:ContainerMetadata state=3:ContainerState created_at=4:int64 started_at=5:int64
    finished_at=6:int64 exit_code=7:int32 image=8:ImageSpec image_ref=9 reason=10 message=11 labels=12:map
    annotations=13:map mounts=14*Mount log_path=15 resources=16:ContainerResources image_id=17 user=18:ContainerUser
    stop_signal=19:Signal
ContainerStatusResponse: status=1:ContainerStatus info=2:map
ContainerResources: linux=1:LinuxContainerResources
ContainerUser: linux=1:LinuxContainerUser
UpdateContainerResourcesRequest: container_id=1 linux=2:LinuxContainerResources annotations=4:map
UpdateContainerResourcesResponse:
ExecSyncRequest: container_id=1 cmd=2*string timeout=3:int64
ExecSyncResponse: stdout=1:bytes stderr=2:bytes exit_code=3:int32
ExecRequest: container_id=1 cmd=2*string tty=3:bool stdin=4:bool stdout=5:bool stderr=6:bool
ExecResponse: url=1
AttachRequest: container_id=1 stdin=2:bool tty=3:bool stdout=4:bool stderr=5:bool
AttachResponse: url=1
PortForwardRequest: pod_sandbox_id=1 port=2*int32
PortForwardResponse: url=1
RuntimeCondition: type=1 status=2:bool reason=3 message=4
RuntimeStatus: conditions=1*RuntimeCondition
StatusRequest: verbose=1:bool
RuntimeHandlerFeatures: recursive_read_only_mounts=1:bool user_namespaces=2:bool
RuntimeHandler: name=1 features=2:RuntimeHandlerFeatures
RuntimeFeatures: supplemental_groups_policy=1:bool user_namespaces_host_network=2:bool
StatusResponse: status=1:RuntimeStatus info=2:map runtime_handlers=3*RuntimeHandler features=4:RuntimeFeatures
ReopenContainerLogRequest: container_id=1
ReopenContainerLogResponse:
GetEventsRequest:
ContainerEventResponse: container_id=1 container_event_type=2:ContainerEventType created_at=3:int64
    pod_sandbox_status=4:PodSandboxStatus containers_statuses=5*ContainerStatus
"""
"""Message, then its fields: name, number, `:type` or `*type` of a repeated one; without a type it is a string.

`map` is a map of texts.
"""

IMAGES = """
ImageSpec: image=1 annotations=2:map user_specified_image=18 runtime_handler=19 image_ref=20
ImageFilter: image=1:ImageSpec
ListImagesRequest: filter=1:ImageFilter
Image: id=1 repo_tags=2*string repo_digests=3*string size=4:uint64 uid=5:Int64Value username=6 spec=7:ImageSpec
    pinned=8:bool
ListImagesResponse: images=1*Image
ImageStatusRequest: image=1:ImageSpec verbose=2:bool
ImageStatusResponse: image=1:Image info=2:map
AuthConfig: username=1 password=2 auth=3 server_address=4 identity_token=5 registry_token=6
PullImageRequest: image=1:ImageSpec auth=2:AuthConfig sandbox_config=3:PodSandboxConfig
PullImageResponse: image_ref=1
RemoveImageRequest: image=1:ImageSpec
RemoveImageResponse:
"""

STATS = """
UInt64Value: value=1:uint64
FilesystemIdentifier: mountpoint=1
FilesystemUsage: timestamp=1:int64 fs_id=2:FilesystemIdentifier used_bytes=3:UInt64Value inodes_used=4:UInt64Value
ContainerStatsRequest: container_id=1
ContainerStatsResponse: stats=1:ContainerStats
ContainerAttributes: id=1 metadata=2:ContainerMetadata labels=3:map annotations=4:map
ContainerStats: attributes=1:ContainerAttributes cpu=2:CpuUsage memory=3:MemoryUsage
    writable_layer=4:FilesystemUsage swap=5:SwapUsage io=6:IoUsage
PsiStats: Full=1:PsiData Some=2:PsiData
PsiData: Total=1:uint64 Avg10=2:double Avg60=3:double Avg300=4:double
CpuUsage: timestamp=1:int64 usage_core_nano_seconds=2:UInt64Value usage_nano_cores=3:UInt64Value psi=4:PsiStats
MemoryUsage: timestamp=1:int64 working_set_bytes=2:UInt64Value available_bytes=3:UInt64Value
    usage_bytes=4:UInt64Value rss_bytes=5:UInt64Value page_faults=6:UInt64Value major_page_faults=7:UInt64Value
    psi=8:PsiStats
IoUsage: timestamp=1:int64 psi=2:PsiStats
SwapUsage: timestamp=1:int64 swap_available_bytes=2:UInt64Value swap_usage_bytes=3:UInt64Value
"""

DOWNLOADS = """
ListContentStatusesRequest:
ContentStatus: ref=3 offset=4:int64 total=5:int64
ListContentStatusesResponse: statuses=1*ContentStatus
"""
"""Of containerd's own API (api/services/content/v1/content.proto): what it downloads. CRI has no such call."""
