//! The collector as it is run, on simulated nodes, against the simulator's ground truth.
//!
//! [`scenarios`] runs every scenario of the simulator, [`random`] drawn ones; [`checks`] says what holds of each run, and how far. [`reports`] has the right
//! behaviour for each public failure report (their list stands in the simulator's README):
//!
//! | report | scenario | test |
//! |---|---|---|
//! | 1 | mig-resliced | a_new_cut_is_followed_without_a_restart_and_the_inventory_shows_the_live_layout_only |
//! | 2 | stale-driver | what_a_driver_no_longer_says_expires_and_health_turns_red |
//! | 3 | mig-resliced | a_new_cut_is_followed_without_a_restart_and_the_inventory_shows_the_live_layout_only |
//! | 4 | mig-resliced | a_new_cut_is_followed_without_a_restart_and_the_inventory_shows_the_live_layout_only |
//! | 5 | lost-gpu | a_gpu_that_was_lost_comes_back_and_both_are_said_once |
//! | 7 | capture-dcgm-a100 | values_of_a_gpu_stand_once_and_never_at_its_instances |
//! | 8 | revoked | lost_access_is_an_alarm_and_no_fault_so_that_allocations_go_on |
//! | 9 | time-slicing | sharers_of_a_gpu_all_appear_with_their_own_part |
//! | 10 | time-slicing | sharers_of_a_gpu_all_appear_with_their_own_part |
//! | 11 | sixteen-instances | instances_that_cannot_be_read_are_unavailable_and_their_coverage_is_short |
//! | 11 | sparse-mig | holes_in_the_list_of_instances_hide_none_behind_them |
//! | 12 | dynamic-mig | an_instance_made_for_a_pod_is_found_by_gpu_profile_and_placement |
//! | 14 | mig-mixed | the_value_of_an_instance_is_relative_to_the_instance |
//! | 15 | hidden-holder | an_instance_that_nobody_seems_to_hold_is_there_with_its_memory |
//! | 17 | vanishing | a_list_that_grows_between_its_size_and_its_rows_is_read_whole |
//! | 18 | whole-gpus | an_idle_gpu_is_zero_and_no_error |
//! | 19 | zombies | rows_that_cannot_be_true_are_dropped_and_counted |
//! | 20 | mig-three-states | mig_unsupported_off_on_and_pending_are_four_states |
//! | 21 | capture-a100-80-mig | what_cannot_be_measured_of_an_instance_is_not_zero |
//! | 22 | vanishing | a_process_that_ends_between_nvml_and_the_kernel_is_normal |
//! | 23 | lost-gpu | a_lost_gpu_is_in_fault_from_that_instant_and_the_others_are_read_on |
//! | 24 | vanishing | a_listed_process_without_an_entry_in_proc_is_counted_and_left_out |
//! | 25 | vanishing | nothing_is_shown_of_processes_that_ended |
//! | 26 | driver-535 | long_records_of_a_driver_are_read_as_they_are |
//! | 28 | zombies | what_an_ended_process_held_is_no_longer_summed |
//! | 29 | container-open-modules | nobody_is_named_as_owner_from_a_pid_namespace_of_its_own |
//! | 30 | whole-gpus | use_and_presence_are_different_numbers_from_different_sources |
//! | 31 | time-slicing | shares_are_not_made_up_by_the_node |
//! | 32 | whole-gpus | every_gpu_has_a_row_in_every_window_so_that_used_and_idle_make_the_capacity |
//! | 33 | finished-pods | a_pod_that_ended_is_not_placed_again |
//! | 34 | revoked | access_that_does_not_come_back_wants_a_new_process_and_the_gap_is_told |
//! | 35 | unprivileged | without_privilege_the_gpu_does_not_tell_and_the_handles_of_its_instances_do |
//! | 38 | gpm-wrong-echo | a_metric_under_another_number_is_not_believed |
//! | 39 | gi-recreated | an_instance_made_again_under_its_ids_inherits_nothing |
//! | 41 | driver-upgrade | a_driver_that_was_replaced_is_loaded_anew_with_a_gap |
//! | 42 | zombies | memory_of_a_dead_process_stays_with_its_job_until_it_is_free |
//! | 43 | cgroup-shapes | owners_are_read_from_every_shape_of_a_control_group |
//! | 44 | cgroup-shapes | a_job_under_the_new_keys_of_slurm_is_declared_by_itself |
//! | 45 | cgroup-shapes | owners_are_read_from_every_shape_of_a_control_group |
//! | 46 | pid-reuse | two_processes_under_one_number_are_two |
//! | 48 | stalled-dense-mig | a_stall_of_one_gpu_is_no_stall_of_the_others |

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod checks;
mod node;
mod oracle;
mod output;
mod random;
mod reports;
mod scenarios;
mod view;
