-- KEYS lease, fence, sessions, info
-- ARGV replica, nonce, lease ms, session ms, start (1 or 0), floor, info, channel, most replicas of a group that is no herd
-- Returns {granted, token, clock us}, {held, lease, its remaining ms, replicas}, {lost} or {ended}.

local lease, fence, sessions, info = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local replica, nonce, about = ARGV[1], ARGV[2], ARGV[7]
local ttl, session, floor = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6])

local err = foreign(lease, 'string') or foreign(fence, 'hash') or foreign(sessions, 'zset') or foreign(info, 'hash')
if err then
  return err
end
local us = now_us()
local ms = math.floor(us / 1000)
local till = ms + ttl -- one instant for the lease and the session
if was_released(fence, nonce) then
  return {'lost'}
end
local living = session_end(sessions, replica, ms)
if ARGV[5] ~= '1' and not living then
  return {'ended'}
end

local replicas = redis.call('ZCOUNT', sessions, whole(ms), '+inf')
if not living then
  replicas = replicas + 1
end
local value = redis.call('GET', lease)
local token, owner
if value then
  token, owner = string.match(value, '^(%d+) (%S+ %S+)$')
  if owner ~= replica .. ' ' .. nonce then
    set_session(sessions, info, replica, math.max(living or 0, ms + session), about, ms)
    return {'held', value, redis.call('PTTL', lease), replicas}
  end
  redis.call('PEXPIREAT', lease, whole(till))
else
  local stored = tonumber(redis.call('HGET', fence, 'token') or '0') or 0
  local following = math.max(stored + 1, us, floor + 1)
  if following > MAX_TOKEN then
    return redis.error_reply('NOTOKEN ' .. fence .. ' leaves no token below 2^53')
  end
  token = whole(following)
  redis.call('SET', lease, token .. ' ' .. replica .. ' ' .. nonce, 'PXAT', whole(till))
  redis.call('HSET', fence, 'token', token)
end
redis.call('PEXPIRE', fence, FENCE_MS + ttl)
set_session(sessions, info, replica, till, about, ms)
if not value and replicas > tonumber(ARGV[9]) then
  publish(ARGV[8], 'taken ' .. token) -- those of a herd who have not asked yet need not
end
return {'granted', token, whole(us)}
